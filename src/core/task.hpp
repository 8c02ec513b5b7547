// The coroutine of the protocol: lazy, knows no executor, resumes whoever awaits it (symmetric transfer).
#pragma once

#include <coroutine>
#include <cstddef>
#include <exception>
#include <optional>
#include <utility>

namespace fslock::core {

/// Frames come from a small store per thread, since every acquisition needs a few of the same sizes.
[[nodiscard]] void* allocate_frame(std::size_t bytes);
void deallocate_frame(void* frame, std::size_t bytes) noexcept;

/// The same store for what lives about as long as a frame.
template <class T>
struct frame_allocator {
    using value_type = T;
    frame_allocator() noexcept = default;
    template <class U>
    explicit(false) frame_allocator(const frame_allocator<U>&) noexcept {}

    [[nodiscard]] T* allocate(std::size_t n) { return static_cast<T*>(allocate_frame(n * sizeof(T))); }
    void deallocate(T* at, std::size_t n) noexcept { deallocate_frame(at, n * sizeof(T)); }
    friend bool operator==(const frame_allocator&, const frame_allocator&) noexcept { return true; }
};

/// A coroutine that starts when it is awaited, or by `resume`, and is destroyed with its `task`, wherever it is
/// suspended. Not thread-safe: one thread at a time may run it.
template <class T>
class [[nodiscard]] task {
 public:
    struct promise_type;
    using handle = std::coroutine_handle<promise_type>;

    struct hand_back {
        bool await_ready() const noexcept { return false; }
        std::coroutine_handle<> await_suspend(handle ended) noexcept { return ended.promise().awaiting; }
        void await_resume() const noexcept {}
    };

    struct promise_type {
        std::coroutine_handle<> awaiting = std::noop_coroutine();
        std::optional<T> value;
        std::exception_ptr error;

        task get_return_object() { return task(handle::from_promise(*this)); }
        std::suspend_always initial_suspend() noexcept { return {}; }
        hand_back final_suspend() noexcept { return {}; }
        void return_value(T v) { value.emplace(std::move(v)); }
        void unhandled_exception() noexcept { error = std::current_exception(); }
        static void* operator new(std::size_t n) { return allocate_frame(n); }
        static void operator delete(void* p, std::size_t n) noexcept { deallocate_frame(p, n); }
    };

    task() noexcept = default;
    task(task&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
    task& operator=(task&& other) noexcept {
        if (this != &other) {
            if (handle_) handle_.destroy();
            handle_ = std::exchange(other.handle_, {});
        }
        return *this;
    }
    ~task() {
        if (handle_) handle_.destroy();
    }

    [[nodiscard]] bool await_ready() const noexcept { return false; }
    std::coroutine_handle<> await_suspend(std::coroutine_handle<> awaiting) noexcept {
        handle_.promise().awaiting = awaiting;
        return handle_;
    }
    T await_resume() { return result(); }

    /// Starts it; it runs until it suspends for something outside, or ends.
    void resume() { handle_.resume(); }
    [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(handle_); }
    [[nodiscard]] bool done() const noexcept { return handle_.done(); }
    /// REQUIRES: `done()`. Throws what the coroutine threw.
    [[nodiscard]] T result() {
        if (handle_.promise().error) std::rethrow_exception(handle_.promise().error);
        return std::move(*handle_.promise().value);
    }

 private:
    explicit task(handle h) noexcept : handle_(h) {}
    handle handle_;
};

/// Runs `t` to its end where nothing in it suspends, as in every real world.
template <class T>
[[nodiscard]] T run_to_end(task<T> t) {
    t.resume();
    return t.result();
}

}  // namespace fslock::core
