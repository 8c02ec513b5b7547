// Values from the bytes of an input. When there are no more bytes, they are zeros.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>

namespace fuzz {

class bytes {
 public:
    bytes(const std::uint8_t* data, std::size_t size) noexcept : rest_(data, size) {}

    template <class T>
    T number() noexcept {
        T n{};
        const auto available = std::min(sizeof n, rest_.size());
        if (available != 0) std::memcpy(&n, rest_.data(), available);
        rest_ = rest_.subspan(available);
        return n;
    }
    bool flag() noexcept { return (number<std::uint8_t>() & 1) != 0; }
    /// From `low` to `high`, both included.
    std::int64_t between(std::int64_t low, std::int64_t high) noexcept {
        const auto range = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low) + 1;
        const auto n = number<std::uint64_t>();
        return static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + (range == 0 ? n : n % range));
    }
    template <class T, std::size_t N>
    T any_of(const T (&choices)[N]) {
        return choices[number<std::uint8_t>() % N];
    }
    std::string text(std::size_t longest) {
        const auto size = std::min({static_cast<std::size_t>(number<std::uint8_t>()), longest, rest_.size()});
        std::string s(reinterpret_cast<const char*>(rest_.data()), size);
        rest_ = rest_.subspan(size);
        return s;
    }
    template <class T>
    std::optional<T> maybe(T value) {
        if (flag()) return value;
        return std::nullopt;
    }

 private:
    std::span<const std::uint8_t> rest_;
};

}  // namespace fuzz
