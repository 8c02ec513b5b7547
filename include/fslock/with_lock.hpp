// Work under a lock, for as long as it is ours.
#pragma once

#include <concepts>
#include <exception>
#include <filesystem>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "acquire.hpp"
#include "detail/asio_coroutines.hpp"
#include "error.hpp"

namespace fslock {
namespace detail {

template <class Body>
using body_value = typename std::invoke_result_t<Body&, lock_guard&>::value_type;

template <class Body>
concept lock_body = std::invocable<Body&, lock_guard&> && requires { typename body_value<Body>; };

template <class T>
struct with_lock_signature {
    using type = void(std::exception_ptr, T);
    template <class Handler>
    using parked = detail::parked<Handler, std::exception_ptr, T>;
};
template <>
struct with_lock_signature<void> {
    using type = void(std::exception_ptr);
    template <class Handler>
    using parked = detail::parked<Handler, std::exception_ptr>;
};

template <class Token, class Body>
concept with_lock_token =
    asio::completion_token_for<Token, typename with_lock_signature<body_value<std::decay_t<Body>>>::type>;

/// When the work ends there is no loss to wait for; when the lock is lost the work is cancelled. A wait that ends for
/// another reason (the body gave the lock back) cancels nothing.
struct until_ended_or_lost {
    asio::cancellation_type operator()(const error_code& ec) const noexcept {
        return ec ? asio::cancellation_type::none : asio::cancellation_type::all;
    }
    template <class... T>
    asio::cancellation_type operator()(const std::exception_ptr&, const T&...) const noexcept {
        return asio::cancellation_type::all;
    }
};

[[nodiscard]] bool is_cancellation(const std::exception_ptr& e) noexcept;

/// A cancellation that came when nothing waited any more is told to nobody who waits later.
inline void throw_if_cancelled(const asio::cancellation_state& state) {
    if (state.cancelled() != asio::cancellation_type::none) throw system_error(asio::error::operation_aborted);
}

/// Not inside the call that starts the group: it passes no cancellation on before it returns.
template <class Body>
asio::awaitable<body_value<Body>> call_body(Body& body, lock_guard& lock) {
    co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
    co_await asio::post(asio::use_awaitable);
    const asio::cancellation_state meanwhile = co_await asio::this_coro::cancellation_state;
    throw_if_cancelled(meanwhile);
    co_await asio::this_coro::reset_cancellation_state();
    co_return co_await body(lock);
}

template <class Body>
asio::awaitable<body_value<Body>> run_with_lock(std::filesystem::path path, options o, Body body) {
    co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
    const asio::any_io_executor io = co_await asio::this_coro::executor;
    const std::string text = path.string();
    error_code refused;
    lock_guard lock = co_await async_acquire(io, std::move(path), std::move(o),
                                             asio::redirect_error(asio::use_awaitable, refused));
    if (refused) throw system_error(refused, text);
    const asio::cancellation_state meanwhile = co_await asio::this_coro::cancellation_state;
    throw_if_cancelled(meanwhile);
    co_await asio::this_coro::throw_if_cancelled(false);
    auto both = asio::experimental::make_parallel_group(
        [&](auto token) { return asio::co_spawn(io, call_body(body, lock), std::move(token)); },
        // On the strand as well: the group's own handlers must not meet.
        [&](auto token) { return lock.async_wait_lost(asio::bind_executor(io, std::move(token))); });
    auto outcome = co_await both.async_wait(until_ended_or_lost(), asio::use_awaitable);
    const std::exception_ptr failure = std::get<1>(outcome);
    const bool lost = !std::get<std::tuple_size_v<decltype(outcome)> - 1>(outcome) || lock.lost();
    error_code released;
    co_await lock.async_release(asio::redirect_error(asio::use_awaitable, released));
    if (failure && !(lost && is_cancellation(failure))) std::rethrow_exception(failure);
    if (lost) throw system_error(errc::lost, text);
    if (released) throw system_error(released, text);
    if constexpr (!std::is_void_v<body_value<Body>>) co_return std::move(std::get<2>(outcome));
}

/// How the work is cancelled. It lives where the work does: the caller's slot has a weak hold on it, and no executor in
/// it that could outlive its context.
struct work_cancellation {
    explicit work_cancellation(const asio::any_io_executor& io) : strand(asio::make_strand(io)) {}

    /// The strand keeps the cancellation of the work from meeting the work on another thread.
    const asio::any_io_executor strand;
    asio::cancellation_signal signal;
};

/// Lives in the caller's slot.
class work_canceller {
 public:
    explicit work_canceller(std::weak_ptr<work_cancellation> work) noexcept : work_(std::move(work)) {}
    void operator()(asio::cancellation_type type) const {
        const auto meant = work_.lock();
        if (meant) asio::dispatch(meant->strand, [meant, type] { meant->signal.emit(type); });
    }

 private:
    std::weak_ptr<work_cancellation> work_;
};

/// `co_spawn` looks at the signal after the coroutine has ended, and before its handler runs: that is in here.
template <class Body>
asio::awaitable<body_value<Body>> run_cancellable(std::shared_ptr<work_cancellation> work, std::filesystem::path path,
                                                  options o, Body body) {
    auto token = asio::bind_cancellation_slot(work->signal.slot(), asio::use_awaitable);
    auto run = run_with_lock<Body>(std::move(path), std::move(o), std::move(body));
    co_return co_await asio::co_spawn(work->strand, std::move(run), std::move(token));
}

struct with_lock_initiation {
    using executor_type = asio::any_io_executor;
    executor_type io;
    [[nodiscard]] executor_type get_executor() const noexcept { return io; }

    template <class Handler, class Body>
    void operator()(Handler&& handler, std::filesystem::path path, options o, Body body) const {
        auto work = std::make_shared<work_cancellation>(io);
        if (auto slot = asio::get_associated_cancellation_slot(handler); slot.is_connected())
            slot.template emplace<work_canceller>(work);
        using signature = with_lock_signature<body_value<Body>>;
        const auto strand = work->strand;
        auto parked = signature::template parked<std::decay_t<Handler>>::create(std::forward<Handler>(handler), strand);
        auto done = [parked = std::move(parked)](auto&&... result) mutable {
            parked.release()->complete(std::forward<decltype(result)>(result)...);
        };
        asio::co_spawn(strand, run_cancellable<Body>(std::move(work), std::move(path), std::move(o), std::move(body)),
                       std::move(done));
    }
};

struct with_lock_initiation_of_handler {
    template <class Handler, class Body>
    void operator()(Handler&& handler, std::filesystem::path path, options o, Body body) const {
        const with_lock_initiation on{executor_for(handler)};
        on(std::forward<Handler>(handler), std::move(path), std::move(o), std::move(body));
    }
};

template <class Body, class Initiation, class Token>
auto initiate_with_lock(Initiation initiation, std::filesystem::path path, options o, Body body, Token& token) {
    using signature = typename with_lock_signature<body_value<Body>>::type;
    return asio::async_initiate<Token, signature>(std::move(initiation), token, std::move(path), std::move(o),
                                                  std::move(body));
}

}  // namespace detail

/// Acquires the lock at `path`, runs `body` under it and gives it back: `void(std::exception_ptr[, T])` for a body that
/// returns `asio::awaitable<T>` (T default-constructible).
///
/// `body` is called with the guard, as `body(lock_guard&)`, and kept until it has ended; so is the guard. A body with
/// captures by value must be named before it stands beside `co_await` (g++ 12 destroys such temporaries twice):
/// `auto body = ...; co_await async_with_lock(path, std::move(body));`
///
/// * Lost while the body runs: the body is cancelled (terminal; as soon as `async_wait_lost` would know), its end is
///   waited for, and the result is `errc::lost`, whatever it returned. An exception of the body wins, unless it only
///   says that it was cancelled. A loss that is found when the lock is given back is `errc::lost` as well.
/// * A body may give the lock back early, through the guard; then nothing cancels it.
/// * Executor: body, handler and `on_event` run on `io`, inside a strand of their own; the handler on its associated
///   executor if it has one. Without `io`: on the handler's associated executor.
/// * May be destroyed meanwhile: `path` and `o` are copied. Destroying the context drops handler and body, and gives the
///   lock back.
/// * Cancellation: until the body runs, as `async_acquire`, and a lock that was ours already goes back; then it is passed
///   on to the body, which like any coroutine heeds terminal cancellation unless it says otherwise. It may be emitted on
///   any thread, and when all is over.
/// * Errors: those of `async_acquire`, of the body, and of giving the lock back, in this order. Those of the lock are
///   `system_error`s whose text begins with the path.
template <detail::io_source Io, detail::lock_body Body, detail::with_lock_token<Body> Token = detail::default_token>
auto async_with_lock(Io&& io, std::filesystem::path path, options o, Body body, Token&& token = Token{}) {
    return detail::initiate_with_lock(detail::with_lock_initiation{detail::executor_of(std::forward<Io>(io))},
                                      std::move(path), std::move(o), std::move(body), token);
}
template <detail::io_source Io, detail::lock_body Body, detail::with_lock_token<Body> Token = detail::default_token>
auto async_with_lock(Io&& io, std::filesystem::path path, Body body, Token&& token = Token{}) {
    return detail::initiate_with_lock(detail::with_lock_initiation{detail::executor_of(std::forward<Io>(io))},
                                      std::move(path), options(), std::move(body), token);
}
template <detail::lock_body Body, detail::with_lock_token<Body> Token = detail::default_token>
auto async_with_lock(std::filesystem::path path, options o, Body body, Token&& token = Token{}) {
    return detail::initiate_with_lock(detail::with_lock_initiation_of_handler{}, std::move(path), std::move(o),
                                      std::move(body), token);
}
template <detail::lock_body Body, detail::with_lock_token<Body> Token = detail::default_token>
auto async_with_lock(std::filesystem::path path, Body body, Token&& token = Token{}) {
    return detail::initiate_with_lock(detail::with_lock_initiation_of_handler{}, std::move(path), options(),
                                      std::move(body), token);
}

}  // namespace fslock
