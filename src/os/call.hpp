// What a world answers: a value at once, or one that arrives later.
#pragma once

#include <concepts>
#include <coroutine>
#include <utility>

namespace fslock::os {

/// Where a pending call waits. Whoever owns it writes the answer into `slot` (a `T*`) and resumes the coroutine.
class suspension {
 public:
    virtual void suspended(std::coroutine_handle<> waiting, void* slot) = 0;

 protected:
    ~suspension() = default;
};

/// The awaitable answer of a world. Real worlds answer at once and never suspend; a simulated one suspends every
/// call, so that a test decides who goes on; a wait suspends everywhere.
template <class T>
class [[nodiscard]] call {
 public:
    template <class U>
        requires std::convertible_to<U, T>
    call(U&& answer) : value_(std::forward<U>(answer)) {}  // NOLINT: an answer is a call
    explicit call(suspension& pending) noexcept : pending_(&pending) {}

    [[nodiscard]] bool await_ready() const noexcept { return pending_ == nullptr; }
    void await_suspend(std::coroutine_handle<> h) { pending_->suspended(h, &value_); }
    [[nodiscard]] T await_resume() { return std::move(value_); }

 private:
    T value_{};
    suspension* pending_ = nullptr;
};

}  // namespace fslock::os
