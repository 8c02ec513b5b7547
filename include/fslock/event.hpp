// What can be told about a lock while it is waited for or held.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>

namespace fslock {

/// The fact on which a verdict about an owner rests.
enum class proof {
    none,
    witness_held,        ///< Alive: the kernel says that the owner still keeps its lock on the record.
    witness_free,        ///< Dead: the owner's lock on the record is gone, so the owner is.
    process_alive,       ///< Alive: the recorded process exists and is the one that was recorded.
    process_gone,        ///< Dead: no such process in the common PID namespace.
    process_reused,      ///< Dead: the pid belongs to a process that started at another time.
    leftover,            ///< Dead: the record is of this very process, which does not hold the lock (exec).
    earlier_boot,        ///< Dead: of another boot of this machine, and silent.
    silent,              ///< Dead: no heartbeat for longer than the limit.
    malformed_unchanged  ///< Dead: a damaged record that nobody completed.
};

/// Who owns, or owned, a lock: what the record says, for people. Fields the record does not have are empty or 0.
struct owner_info {
    owner_info() = default;

    int pid = 0;
    std::string hostname;
    std::string writer_epoch;
    std::string label;
    std::chrono::system_clock::time_point acquired{};        ///< By the owner's wall clock.
    std::chrono::system_clock::time_point last_heartbeat{};  ///< By the owner's wall clock.
    bool this_process = false;                               ///< The owner is the process that asks.
};

/// What became of the record of a lock that was lost.
enum class loss {
    none,            ///< The lock was not lost.
    removed,         ///< Nothing is at its path any more.
    replaced,        ///< Something else is: the record of another owner, or a copy of ours that somebody judges dead.
    directory_gone,  ///< Its directory was moved or removed.
};

enum class event_kind {
    waiting,          ///< The lock is held; `owner` says by whom. Who queues behind a lock of his own execution context
                      ///< is told at once; behind other waiters of it, when it is his turn. Once for each of the two.
    reclaimed,        ///< A dead owner's record was removed; `proof` says why. The lock is being claimed.
    reclaim_blocked,  ///< The owner is dead but somebody else is removing the record, or failed to. Once a minute.
    stale_but_alive,  ///< The owner's heartbeat is late, but a kernel lock or its process shows that the owner lives. It
                      ///< is not displaced. Once per wait, to a waiter whose turn it is.
    held_long,        ///< The owner, shown to live as above, holds for longer than `options::warn_after`. Once per wait,
                      ///< to a waiter whose turn it is.
    beat_failed,      ///< A heartbeat could not be written; `error` says why. It is tried again.
    beat_recovered,   ///< Heartbeats work again after `count` failures.
    at_risk,          ///< No heartbeat for three intervals, failed or hanging: owners on other hosts may take over
                      ///< soon. Once, until heartbeats work again.
    lost,             ///< The lock is not ours any more; `loss` says what happened. No further heartbeats.
    polling,          ///< The kernel cannot tell of changes (`error`: usually a limit of inotify): the waiter looks
                      ///< every `options::poll_interval` instead. Once per wait.
};

/// One report to `options::on_event`. A plain value; fields that a kind does not mention are empty.
struct event {
    event() = default;

    event_kind kind{};
    std::filesystem::path path;
    owner_info owner;                    ///< Whom the event is about; for holder events, ourselves.
    fslock::loss loss = loss::none;      ///< For `lost`.
    fslock::proof proof = proof::none;   ///< For `reclaimed`, and for `waiting` what shows that the owner lives.
    std::chrono::milliseconds age{0};    ///< Since the owner's last heartbeat; for `held_long`, since it acquired.
    std::error_code error;               ///< Of `beat_failed`, `at_risk` and `polling`, why; of `lost`, `errc::lost`.
    std::uint64_t count = 0;             ///< Heartbeats that failed; of `reclaim_blocked`, reports suppressed before it.
};

/// The words for an owner, a proof, a loss, a kind of event and an event, in English.
[[nodiscard]] std::string to_string(const owner_info& o);
[[nodiscard]] const char* to_string(proof p) noexcept;
[[nodiscard]] const char* to_string(loss l) noexcept;
[[nodiscard]] const char* to_string(event_kind k) noexcept;
[[nodiscard]] std::string to_string(const event& e);

}  // namespace fslock
