// How a lock is taken, kept fresh and judged. Every duration is at least zero and at most ten years.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <system_error>

namespace fslock {

struct event;

/// How much has to survive a power loss.
enum class durability {
    relaxed,  ///< Nothing is synced on a local filesystem: after a power loss the record may be empty or gone; both are
              ///< recognised. On a shared one the record and each heartbeat are synced in any case, for others to see.
    full,     ///< The record is synced before it becomes visible, its directory afterwards. Costs two syncs.
};

/// What to do with a file at the lock path that no lock wrote.
enum class foreign_content {
    refuse,   ///< Fail with `errc::not_a_lock_file` and leave the file alone.
    reclaim,  ///< Treat any regular file that is no record as a damaged one and remove it after `malformed_grace`. One
              ///< that may not be read stays an error (EACCES).
};

/// Whether the owner proves its life to the kernel.
enum class witness {
    automatic,  ///< Keep a kernel lock on the record wherever the filesystem is local. Takes a descriptor for as long as
                ///< the lock is held; records beyond half of RLIMIT_NOFILE do without, as with `off`.
    off,        ///< Never; life is judged by process and heartbeat.
};

/// Whether the kernel is asked to tell of changes.
enum class events {
    automatic,  ///< Wherever it can: on a local filesystem, within the limits of inotify(7).
    off,        ///< Never: a waiter looks every `poll_interval`, an owner at every heartbeat.
};

/// Options of one acquisition. A plain value; copying it is all there is to it.
///
/// It has a constructor on purpose: g++ 12 destroys temporaries of aggregates twice when they stand beside
/// `co_await`.
struct options {
    options() = default;

    /// Time between two heartbeats of the owner, 1 ms to 1 hour. Recorded, so that others judge the owner by its
    /// own pace: none of `stale_after`, `foreign_stale_after` and `foreign_confirm` is ever applied at less than three of
    /// the owner's intervals.
    std::chrono::milliseconds heartbeat_interval{5'000};

    /// Silence after which an owner without a witness counts as dead if its process is gone but may be of another PID
    /// namespace, or if it is, on a local filesystem, of an earlier boot. Also the age of a heartbeat at which
    /// `stale_but_alive` is reported. At least 1 ms.
    std::chrono::milliseconds stale_after{15'000};

    /// Silence after which an owner on another host counts as dead. Not below `stale_after`.
    std::chrono::milliseconds foreign_stale_after{75'000};

    /// The part of `foreign_stale_after` that this process must have watched itself, without a change and without
    /// a gap: 15 s where the owner beats every 5 s, since three of its intervals are more than the 10 s. Waived when the
    /// record is silent for more than an hour.
    std::chrono::milliseconds foreign_confirm{10'000};

    /// How long a damaged record (empty, cut off, zeros) must stay unchanged before it is removed, whatever its owner's
    /// interval was. Of a damaged reclaim token it is 60 s.
    std::chrono::milliseconds malformed_grace{5'000};

    /// How often a waiter looks where the kernel does not wake it (see `events`); spread by a fifth to both sides. 1 ms
    /// to 1 minute. Where it does, a waiter still looks every 5 to 7 s; where `poll_interval` is longer than 5 s, after 1
    /// to 1.4 of that.
    std::chrono::milliseconds poll_interval{100};

    /// How long an owner may hold before waiters report `held_long`; it is only a report.
    std::chrono::milliseconds warn_after{600'000};

    /// See `fslock::durability`.
    fslock::durability durability = fslock::durability::relaxed;

    /// See `fslock::foreign_content`.
    fslock::foreign_content foreign_content = fslock::foreign_content::refuse;

    /// See `fslock::witness`.
    fslock::witness witness = fslock::witness::automatic;

    /// See `fslock::events`.
    fslock::events events = fslock::events::automatic;

    /// For people: what the owner is doing. UTF-8, at most 256 bytes; empty means that none is recorded.
    std::string label;

    /// Permission bits of the record, whatever the umask; at least 0600, at most 0777. Others can judge an owner only
    /// if they may read it.
    unsigned mode = 0600;

    /// Told what happens while waiting and holding; see `fslock::event`. Called on the executor that the lock was
    /// acquired on (`io`, or the handler's without it), in order and never two at a time, without any mutex of fslock
    /// held, so it may call fslock. If the lock was acquired by a blocking function, blocking acquisitions fail there
    /// (EDEADLK). It must not throw: an exception ends the program.
    std::function<void(const event&)> on_event;
};

/// Says whether every field of `o` is in its range: no error, or `errc::bad_options`.
[[nodiscard]] std::error_code check(const options& o) noexcept;

}  // namespace fslock
