// A value or an error code.
#pragma once

#include <system_error>
#include <utility>

namespace fslock::os {

template <class T>
class [[nodiscard]] result {
 public:
    result() = default;
    result(T value) : value_(std::move(value)) {}          // NOLINT: a value is a result
    result(std::error_code error) noexcept : error_(error) {}  // NOLINT: so is an error

    explicit operator bool() const noexcept { return !error_; }
    [[nodiscard]] std::error_code error() const noexcept { return error_; }
    [[nodiscard]] T& operator*() noexcept { return value_; }
    [[nodiscard]] const T& operator*() const noexcept { return value_; }
    [[nodiscard]] T* operator->() noexcept { return &value_; }
    [[nodiscard]] const T* operator->() const noexcept { return &value_; }

 private:
    T value_{};
    std::error_code error_;
};

}  // namespace fslock::os
