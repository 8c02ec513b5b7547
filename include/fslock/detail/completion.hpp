// A handler that waits for its result.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "asio.hpp"

namespace fslock {

namespace engine {
class operation;
struct lost_wait;
}  // namespace engine

namespace detail {

/// A parked handler. Either `complete` or `destroy` is called, once, and ends its life.
template <class... Args>
class completion {
 public:
    /// Posts the handler with its arguments; never calls it. An allocation that fails here ends the program: there
    /// is nobody left to tell.
    virtual void complete(Args... args) noexcept = 0;
    /// Frees the handler without calling it.
    virtual void destroy() noexcept = 0;

 protected:
    ~completion() = default;
};

struct destroy_completion {
    template <class... Args>
    void operator()(completion<Args...>* c) const noexcept {
        c->destroy();
    }
};

template <class... Args>
using completion_ptr = std::unique_ptr<completion<Args...>, destroy_completion>;

template <class Executor>
[[nodiscard]] auto tracked(const Executor& executor) {
    return asio::prefer(executor, asio::execution::outstanding_work.tracked);
}

/// Posts `handler` with `args` through `io`, whose associated executor it then reaches by itself.
template <class Handler, class... Args>
void post_completion(const asio::any_io_executor& io, Handler&& handler, Args&&... args) {
    asio::post(io, append(std::forward<Handler>(handler), std::forward<Args>(args)...));
}

/// Both executors count as having work while the handler is parked, so that nobody's `run()` returns.
template <class Handler, class... Args>
class parked final : public completion<Args...> {
    using allocator = typename std::allocator_traits<
        asio::associated_allocator_t<Handler>>::template rebind_alloc<parked>;
    using executor = asio::associated_executor_t<Handler, asio::any_io_executor>;

 public:
    [[nodiscard]] static completion_ptr<Args...> create(Handler handler, const asio::any_io_executor& io) {
        allocator a(asio::get_associated_allocator(handler));
        auto* const memory = std::allocator_traits<allocator>::allocate(a, 1);
        return completion_ptr<Args...>(::new (static_cast<void*>(memory)) parked(std::move(handler), io));
    }

    void complete(Args... args) noexcept override {
        Handler handler(std::move(handler_));
        const auto io = std::move(io_);
        const auto work = std::move(work_);
        free(handler);  // before the handler can run
        post_completion(io, std::move(handler), std::move(args)...);
    }

    void destroy() noexcept override {
        const Handler handler(std::move(handler_));
        const auto io = std::move(io_);
        const auto work = std::move(work_);
        free(handler);
    }

 private:
    parked(Handler&& handler, const asio::any_io_executor& io)
        : handler_(std::move(handler)), io_(tracked(io)), work_(tracked(asio::get_associated_executor(handler_, io))) {}
    ~parked() = default;

    void free(const Handler& handler) noexcept {
        allocator a(asio::get_associated_allocator(handler));
        this->~parked();
        std::allocator_traits<allocator>::deallocate(a, this, 1);
    }

    Handler handler_;
    asio::any_io_executor io_;
    std::decay_t<decltype(tracked(std::declval<executor>()))> work_;
};

void cancel(const std::shared_ptr<engine::operation>& waiting);
void cancel(const std::shared_ptr<engine::lost_wait>& waiting);

/// Lives in a cancellation slot, perhaps longer than what it cancels.
template <class Waiting>
class canceller {
 public:
    explicit canceller(std::weak_ptr<Waiting> waiting) noexcept : waiting_(std::move(waiting)) {}
    void operator()(asio::cancellation_type type) const {
        constexpr auto any = asio::cancellation_type::terminal | asio::cancellation_type::partial |
                             asio::cancellation_type::total;
        if ((type & any) == asio::cancellation_type::none) return;
        if (const auto waiting = waiting_.lock()) cancel(waiting);
    }

 private:
    std::weak_ptr<Waiting> waiting_;
};

/// The executor, if it is one for I/O, else the system's.
template <class Executor>
[[nodiscard]] asio::any_io_executor executor_to_post(const Executor& executor) {
    if constexpr (std::is_convertible_v<Executor, asio::any_io_executor>) {
        return executor;
    } else {
        return asio::system_executor();
    }
}

}  // namespace detail
}  // namespace fslock
