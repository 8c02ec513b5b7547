// Getting a lock.
#pragma once

#include <chrono>
#include <concepts>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "detail/completion.hpp"
#include "lock_guard.hpp"
#include "options.hpp"

namespace fslock {

namespace detail {

using wait_limit = std::optional<std::chrono::steady_clock::duration>;  ///< absent: for as long as it takes
using acquire_completion = completion_ptr<error_code, lock_guard>;
using acquire_signature = void(error_code, lock_guard);

/// The one conversion of a user's timeout: saturates instead of overflowing; what is not positive becomes zero.
template <class Rep, class Period>
[[nodiscard]] constexpr std::chrono::steady_clock::duration saturate(std::chrono::duration<Rep, Period> d) {
    using target = std::chrono::steady_clock::duration;
    using wide = std::chrono::duration<long double, target::period>;
    // A hundred years: enough for everybody, and far from what a time point cannot hold.
    constexpr target longest = std::chrono::hours(24 * 365 * 100);
    const wide exact = d;
    if (!(exact > wide::zero())) return target::zero();  // also when it is not a number
    return exact >= wide(longest) ? longest : std::chrono::duration_cast<target>(exact);
}

/// What the first step of an acquisition came to: a result, or an operation that waits for its handler.
struct started {
    started() = default;
    error_code error;
    lock_guard lock;
    std::shared_ptr<engine::operation> waiting;
};

[[nodiscard]] started start_acquire(const asio::any_io_executor& io, std::filesystem::path path, options o,
                                    wait_limit limit);
void submit(std::shared_ptr<engine::operation> waiting, acquire_completion done);

template <class Handler>
void acquire_on(const asio::any_io_executor& io, Handler handler, std::filesystem::path path, options o,
                wait_limit limit) {
    auto first = start_acquire(io, std::move(path), std::move(o), limit);
    if (!first.waiting) {
        post_completion(io, std::move(handler), first.error, std::move(first.lock));
        return;
    }
    auto slot = asio::get_associated_cancellation_slot(handler);
    auto done = parked<Handler, error_code, lock_guard>::create(std::move(handler), io);
    // Before it can complete: afterwards the slot is not ours to touch.
    if (slot.is_connected()) slot.template emplace<canceller<engine::operation>>(first.waiting);
    submit(std::move(first.waiting), std::move(done));
}

/// With an executor, which adaptors like `cancel_after` ask for.
struct acquire_initiation {
    using executor_type = asio::any_io_executor;
    executor_type io;
    [[nodiscard]] executor_type get_executor() const noexcept { return io; }

    template <class Handler>
    void operator()(Handler&& handler, std::filesystem::path path, options o, wait_limit limit) const {
        acquire_on<std::decay_t<Handler>>(io, std::forward<Handler>(handler), std::move(path), std::move(o), limit);
    }
};

struct acquire_initiation_of_handler {
    template <class Handler>
    void operator()(Handler&& handler, std::filesystem::path path, options o, wait_limit limit) const {
        const auto io = executor_for(handler);
        acquire_on<std::decay_t<Handler>>(io, std::forward<Handler>(handler), std::move(path), std::move(o), limit);
    }
};

template <class Token>
auto initiate_acquire(asio::any_io_executor io, std::filesystem::path path, options o, wait_limit limit,
                      Token& token) {
    return asio::async_initiate<Token, acquire_signature>(acquire_initiation{std::move(io)}, token, std::move(path),
                                                          std::move(o), limit);
}

template <class Token>
auto initiate_acquire(std::filesystem::path path, options o, wait_limit limit, Token& token) {
    return asio::async_initiate<Token, acquire_signature>(acquire_initiation_of_handler{}, token, std::move(path),
                                                          std::move(o), limit);
}

template <class Token>
concept acquire_token = asio::completion_token_for<Token, acquire_signature>;

}  // namespace detail

/// Completes with the lock at `path` once it is ours: `void(error_code, lock_guard)`.
///
/// Whatever the order in which things die: either the handler gets a lock, or nothing of ours is on disk. With an error
/// the guard is empty. Any thread may call it.
///
/// * `io`: an executor or an execution context. `token`: any completion token; by default `use_awaitable` with Asio before
///   1.23 and `deferred` from then on, which a coroutine can `co_await`.
/// * Path: made absolute at the call, against the current directory. Its directory must exist. Names are bytes.
/// * Executor: the record is kept fresh on the context of `io`, or of the handler's associated executor when there is
///   no `io`; a handler without one puts the lock on the system context, whose threads run the handler and for which
///   nothing waits at exit. The handler is called on its associated executor, never inside this function.
/// * Order: first come, first served among the callers of one context; between contexts and processes, by chance.
/// * Cancellation (terminal, partial and total): `asio::error::operation_aborted`, unless the lock was ours already.
///   `asio::cancel_after` needs an executor for its timer: it works with the overloads that take `io`, and only there.
/// * May be destroyed meanwhile: `path` and `o` are copied. Destroying the context drops the handler without calling
///   it and leaves nothing on disk. On a shared filesystem a background thread takes back what is there, as after a
///   cancellation; a program that exits waits for that, but no longer than 5 s for all together.
/// * Errors: ENOENT, ENOTDIR, EACCES, EROFS, ENOSPC, EMFILE, ... of the directory or the file, as the system says them
///   and at once; EISDIR for a trailing slash, `.` or `..`; EINVAL for an embedded NUL; ENAMETOOLONG for a name that
///   leaves no room for its reclaim token; `errc::not_a_lock_file`, `errc::reserved_name`, `errc::bad_options`.
///   That another process holds the lock is never an error.
template <detail::io_source Io, detail::acquire_token Token = detail::default_token>
auto async_acquire(Io&& io, std::filesystem::path path, options o, Token&& token = Token{}) {
    return detail::initiate_acquire<Token>(detail::executor_of(std::forward<Io>(io)), std::move(path), std::move(o),
                                           std::nullopt, token);
}
template <detail::io_source Io, detail::acquire_token Token = detail::default_token>
auto async_acquire(Io&& io, std::filesystem::path path, Token&& token = Token{}) {
    return detail::initiate_acquire<Token>(detail::executor_of(std::forward<Io>(io)), std::move(path), options(),
                                           std::nullopt, token);
}
template <detail::acquire_token Token = detail::default_token>
auto async_acquire(std::filesystem::path path, options o, Token&& token = Token{}) {
    return detail::initiate_acquire<Token>(std::move(path), std::move(o), std::nullopt, token);
}
template <detail::acquire_token Token = detail::default_token>
auto async_acquire(std::filesystem::path path, Token&& token = Token{}) {
    return detail::initiate_acquire<Token>(std::move(path), options(), std::nullopt, token);
}

/// The same, but waits for `timeout` at most, from the call on, by the steady clock. Not getting the lock in time is no
/// error: the guard is empty. Zero or less means one attempt, and one more if the owner turned out to be dead. Very long
/// timeouts saturate. Executor, cancellation, errors and all else as `async_acquire`.
template <detail::io_source Io, class Rep, class Period, detail::acquire_token Token = detail::default_token>
auto async_try_acquire(Io&& io, std::filesystem::path path, std::chrono::duration<Rep, Period> timeout, options o,
                       Token&& token = Token{}) {
    return detail::initiate_acquire<Token>(detail::executor_of(std::forward<Io>(io)), std::move(path), std::move(o),
                                           detail::saturate(timeout), token);
}
template <detail::io_source Io, class Rep, class Period, detail::acquire_token Token = detail::default_token>
auto async_try_acquire(Io&& io, std::filesystem::path path, std::chrono::duration<Rep, Period> timeout,
                       Token&& token = Token{}) {
    return detail::initiate_acquire<Token>(detail::executor_of(std::forward<Io>(io)), std::move(path), options(),
                                           detail::saturate(timeout), token);
}
template <class Rep, class Period, detail::acquire_token Token = detail::default_token>
auto async_try_acquire(std::filesystem::path path, std::chrono::duration<Rep, Period> timeout, options o,
                       Token&& token = Token{}) {
    return detail::initiate_acquire<Token>(std::move(path), std::move(o), detail::saturate(timeout), token);
}
template <class Rep, class Period, detail::acquire_token Token = detail::default_token>
auto async_try_acquire(std::filesystem::path path, std::chrono::duration<Rep, Period> timeout,
                       Token&& token = Token{}) {
    return detail::initiate_acquire<Token>(std::move(path), options(), detail::saturate(timeout), token);
}

/// `async_try_acquire` with a timeout of zero.
template <detail::io_source Io, detail::acquire_token Token = detail::default_token>
auto async_try_acquire_once(Io&& io, std::filesystem::path path, options o, Token&& token = Token{}) {
    return detail::initiate_acquire<Token>(detail::executor_of(std::forward<Io>(io)), std::move(path), std::move(o),
                                           std::chrono::steady_clock::duration::zero(), token);
}
template <detail::io_source Io, detail::acquire_token Token = detail::default_token>
auto async_try_acquire_once(Io&& io, std::filesystem::path path, Token&& token = Token{}) {
    return detail::initiate_acquire<Token>(detail::executor_of(std::forward<Io>(io)), std::move(path), options(),
                                           std::chrono::steady_clock::duration::zero(), token);
}
template <detail::acquire_token Token = detail::default_token>
auto async_try_acquire_once(std::filesystem::path path, options o, Token&& token = Token{}) {
    return detail::initiate_acquire<Token>(std::move(path), std::move(o),
                                           std::chrono::steady_clock::duration::zero(), token);
}
template <detail::acquire_token Token = detail::default_token>
auto async_try_acquire_once(std::filesystem::path path, Token&& token = Token{}) {
    return detail::initiate_acquire<Token>(std::move(path), options(),
                                           std::chrono::steady_clock::duration::zero(), token);
}

/// The same for programs without an event loop: they block the calling thread, and nothing cancels them. One background
/// thread keeps the records of all locks acquired this way fresh, and runs their `on_event`. A child of a fork that calls
/// them gets a thread of its own.
///
/// Order, path and errors as `async_acquire`; EAGAIN when there is no thread to be had; EDEADLK in such an `on_event`,
/// whose thread is the one that they would wait for. With an error the guard is empty; the overloads without an `error_code` throw it as `system_error`, whose text begins with the path.
[[nodiscard]] lock_guard acquire(std::filesystem::path path, options o = options());
[[nodiscard]] lock_guard acquire(std::filesystem::path path, options o, error_code& ec);
[[nodiscard]] inline lock_guard acquire(std::filesystem::path path, error_code& ec) {
    return acquire(std::move(path), options(), ec);
}

namespace detail {
[[nodiscard]] lock_guard try_acquire_for(std::filesystem::path path, std::chrono::steady_clock::duration timeout,
                                         options o, error_code& ec);
[[nodiscard]] lock_guard try_acquire_for(std::filesystem::path path, std::chrono::steady_clock::duration timeout,
                                         options o);
}  // namespace detail

/// `acquire` that waits for `timeout` at most, as `async_try_acquire`: not in time is an empty guard and no error.
template <class Rep, class Period>
[[nodiscard]] lock_guard try_acquire(std::filesystem::path path, std::chrono::duration<Rep, Period> timeout,
                                     options o = options()) {
    return detail::try_acquire_for(std::move(path), detail::saturate(timeout), std::move(o));
}
template <class Rep, class Period>
[[nodiscard]] lock_guard try_acquire(std::filesystem::path path, std::chrono::duration<Rep, Period> timeout,
                                     options o, error_code& ec) {
    return detail::try_acquire_for(std::move(path), detail::saturate(timeout), std::move(o), ec);
}
template <class Rep, class Period>
[[nodiscard]] lock_guard try_acquire(std::filesystem::path path, std::chrono::duration<Rep, Period> timeout,
                                     error_code& ec) {
    return detail::try_acquire_for(std::move(path), detail::saturate(timeout), options(), ec);
}

/// `try_acquire` with a timeout of zero.
[[nodiscard]] inline lock_guard try_acquire_once(std::filesystem::path path, options o = options()) {
    return detail::try_acquire_for(std::move(path), {}, std::move(o));
}
[[nodiscard]] inline lock_guard try_acquire_once(std::filesystem::path path, options o, error_code& ec) {
    return detail::try_acquire_for(std::move(path), {}, std::move(o), ec);
}
[[nodiscard]] inline lock_guard try_acquire_once(std::filesystem::path path, error_code& ec) {
    return detail::try_acquire_for(std::move(path), {}, options(), ec);
}

}  // namespace fslock
