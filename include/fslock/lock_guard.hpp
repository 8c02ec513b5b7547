// A held lock.
#pragma once

#include <filesystem>
#include <memory>
#include <string_view>
#include <utility>

#include "detail/completion.hpp"
#include "error.hpp"

namespace fslock {

namespace engine {
class held_lock;
}  // namespace engine

class lock_guard;

namespace detail {

[[nodiscard]] asio::any_io_executor executor_of_lock(const engine::held_lock* lock);
void start_verify(std::shared_ptr<engine::held_lock> lock, completion_ptr<error_code, bool> done);
void start_release(std::shared_ptr<engine::held_lock> lock, completion_ptr<error_code> done);
void start_loss_wait(const std::shared_ptr<engine::lost_wait>& wait, completion_ptr<error_code> done);
[[nodiscard]] std::shared_ptr<engine::lost_wait> make_loss_wait(std::shared_ptr<engine::held_lock> lock);
void end_loss_waits(const engine::held_lock* lock) noexcept;
[[nodiscard]] lock_guard make_guard(std::shared_ptr<engine::held_lock> lock) noexcept;

struct verify_initiation {
    template <class Handler>
    void operator()(Handler&& handler, std::shared_ptr<engine::held_lock> lock) const {
        const auto io = asio::get_associated_executor(handler, executor_of_lock(lock.get()));
        start_verify(std::move(lock), parked<std::decay_t<Handler>, error_code, bool>::create(
                                          std::forward<Handler>(handler), executor_to_post(io)));
    }
};

struct loss_initiation {
    template <class Handler>
    void operator()(Handler&& handler, std::shared_ptr<engine::held_lock> lock) const {
        const auto io = asio::get_associated_executor(handler, executor_of_lock(lock.get()));
        // Here and not before: an operation may be started more than once.
        const auto wait = make_loss_wait(std::move(lock));
        auto slot = asio::get_associated_cancellation_slot(handler);
        auto done = parked<std::decay_t<Handler>, error_code>::create(std::forward<Handler>(handler),
                                                                      executor_to_post(io));
        // Before it can complete: afterwards the slot is not ours to touch.
        if (slot.is_connected()) slot.template emplace<canceller<engine::lost_wait>>(wait);
        start_loss_wait(wait, std::move(done));
    }
};

struct release_initiation {
    template <class Handler>
    void operator()(Handler&& handler, lock_guard guard) const;
};

}  // namespace detail

/// A lock that this process holds, or nothing.
///
/// Empty after default construction, after being moved from or released, and when a `try` function did not get the
/// lock. While it holds, its record is kept fresh by the execution context it was acquired on, which has work for
/// that long, as with a pending timer. The destructor gives the lock back, silently and at once, whatever state that
/// context is in: stopped, never run again, or destroyed. On a shared filesystem, where a call may hang, it leaves
/// the removal to a background thread; a program that exits waits for those, but no longer than 5 s for all together.
///
/// In the child of a fork an inherited guard owns nothing and does nothing. A program that `exec` makes of the process
/// does not own the lock either: the kernel gives it to the next contender.
///
/// Thread rule: one guard, one thread at a time. Different guards are independent.
class [[nodiscard]] lock_guard {
 public:
    lock_guard() noexcept = default;
    lock_guard(lock_guard&& other) noexcept : lock_(std::move(other.lock_)) { detail::end_loss_waits(lock_.get()); }
    lock_guard& operator=(lock_guard&& other) noexcept;
    ~lock_guard();

    /// Whether this guard has a lock that it would give back. Says nothing about a loss; see `lost`.
    explicit operator bool() const noexcept { return static_cast<bool>(lock_); }

    /// The absolute path of the lock; empty for an empty guard. Valid until the guard is released or destroyed.
    [[nodiscard]] const std::filesystem::path& path() const noexcept;

    /// The name of this acquisition, `<pid>-<number>`, which nobody else has or had: for fencing what is written under
    /// the lock. The number is the wall clock in nanoseconds at the attempt that got the lock, or more: greater than that
    /// of every owner whose record was seen before, dead or not, and than any other of this process. On one host it grows
    /// from owner to owner, as long as nobody is stopped in the middle of that attempt. Empty for an empty guard. Valid as
    /// `path`.
    [[nodiscard]] std::string_view writer_epoch() const noexcept;

    /// Looks whether the record at the path is still ours: one system call, made here (without a witness: an open and a
    /// few reads). Call it right before the write that matters. False when the lock was lost, and for an empty guard.
    /// Errors: whatever keeps the record from being read (EIO, EACCES); then nothing is known, and the result is false.
    /// Without an `error_code` they are thrown as `system_error`.
    [[nodiscard]] bool verify();
    [[nodiscard]] bool verify(error_code& ec) noexcept;

    /// Whether a loss is known already: from a heartbeat, from a `verify`, or from the kernel (see `async_wait_lost`). No
    /// system call. False for an empty guard.
    [[nodiscard]] bool lost() const noexcept;

    /// Gives the lock back now; the guard is empty afterwards, in every case. Needs no event loop, and no free space but
    /// for the token that a lock without a witness takes when its heartbeats came late.
    /// Errors: `errc::lost` when the record was not ours any more, and then nothing was removed; else what the
    /// removal says (EACCES after dropping privileges): then the record stays, and counts as dead at once; without a
    /// witness its removal is tried again in the background for some minutes.
    /// Without an `error_code` they are thrown as `system_error`. Releasing an empty guard does nothing and is no error.
    void release();
    void release(error_code& ec) noexcept;

    /// Completes with `void(error_code)` when the lock is lost: without an error, at once when the loss is known already.
    /// Several may wait. What was lost stays in the guard until it is released.
    ///
    /// On a local filesystem the kernel tells of a loss as it happens (the record removed, renamed or replaced, its
    /// directory moved), unless `options::events` is off or the limits of inotify(7) are reached: then, on a shared
    /// filesystem, and when a directory further up is moved, it is found at the next heartbeat.
    ///
    /// * Executor: the associated one, by default the context of the acquisition.
    /// * May be destroyed meanwhile: the guard. Moving, releasing or destroying it, and asking an empty one or one whose
    ///   context is gone, completes with `asio::error::operation_aborted`. Destroying the context drops the handler
    ///   without calling it.
    /// * Cancellation (terminal, partial and total): `operation_aborted`; the lock stays held.
    template <asio::completion_token_for<void(error_code)> Token = detail::default_token>
    auto async_wait_lost(Token&& token = Token{}) {
        return asio::async_initiate<Token, void(error_code)>(detail::loss_initiation{}, token, lock_);
    }

    /// `verify` without blocking on a slow filesystem. Completes with `void(error_code, bool)` on the associated
    /// executor, by default the context of the acquisition (of an empty guard, or when that context is gone: the system
    /// context). Asks for the lock that the guard has at this call. The guard may be moved, released or destroyed
    /// meanwhile: the answer is false once the lock was given back, and moving does not do that. Errors: those of
    /// `verify`. Cannot be cancelled: it takes a moment where it does not hang.
    template <asio::completion_token_for<void(error_code, bool)> Token = detail::default_token>
    auto async_verify(Token&& token = Token{}) {
        return asio::async_initiate<Token, void(error_code, bool)>(detail::verify_initiation{}, token, lock_);
    }

    /// `release` without blocking on a slow filesystem. Completes with `void(error_code)` as `async_verify` does. The
    /// guard is empty from this call on; the lock travels in the operation, and one that is never started gives it
    /// back when it is destroyed. Errors: those of `release`. Cannot be cancelled.
    template <asio::completion_token_for<void(error_code)> Token = detail::default_token>
    auto async_release(Token&& token = Token{}) {
        return asio::async_initiate<Token, void(error_code)>(detail::release_initiation{}, token,
                                                             std::move(*this));
    }

 private:
    friend lock_guard detail::make_guard(std::shared_ptr<engine::held_lock>) noexcept;
    friend struct detail::release_initiation;
    explicit lock_guard(std::shared_ptr<engine::held_lock> lock) noexcept : lock_(std::move(lock)) {}

    std::shared_ptr<engine::held_lock> lock_;
};

template <class Handler>
void detail::release_initiation::operator()(Handler&& handler, lock_guard guard) const {
    const auto io = asio::get_associated_executor(handler, executor_of_lock(guard.lock_.get()));
    auto done = parked<std::decay_t<Handler>, error_code>::create(std::forward<Handler>(handler),
                                                                  executor_to_post(io));
    start_release(std::exchange(guard.lock_, nullptr), std::move(done));
}

}  // namespace fslock
