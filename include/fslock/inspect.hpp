// Looking at locks without wanting them, and breaking one.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "detail/asio.hpp"
#include "event.hpp"

namespace fslock {

/// What can be said about the owner of a record.
enum class liveness {
    alive,            ///< The owner lives, or must be taken to live.
    dead,             ///< The next contender may remove the record.
    being_reclaimed,  ///< Somebody is removing it.
    unknown           ///< Neither can be said yet.
};

/// What is at a lock path.
struct lock_info {
    lock_info() = default;

    std::filesystem::path path;  ///< of the lock, absolute
    owner_info owner;
    liveness verdict = liveness::unknown;
    fslock::proof proof = fslock::proof::none;  ///< on what the verdict rests
    std::chrono::milliseconds silence{0};       ///< since the last heartbeat, by the filesystem's clock
    std::chrono::milliseconds age{0};           ///< since the acquisition, by the owner's clock and ours
    bool malformed = false;                     ///< the record is damaged; `owner` is empty
    bool known_process = false;  ///< `owner.pid` is a number of our PID namespace, as far as the record says
    error_code error;            ///< of `list_locks`: the file could not be looked at; all else is empty
};

/// Reads and judges the record at `path` as a contender would, for status displays; blocks for a few system calls. What
/// this process saw at its last inspections counts, as it does for a contender: one look says `unknown` of an owner on
/// another host until its record is silent for an hour; looks that go on for `foreign_confirm` (`fslock::options`), not
/// more than 15 s apart, say `dead` when a contender would. Changes nothing about the lock; on a shared filesystem it
/// makes and removes a file beside it, to ask for the time there. Empty when there is no record.
/// Errors: those of `async_acquire` for the path and for what is there. Here and below, the overloads without an
/// `error_code` throw them as `system_error`, whose text begins with the path. Any thread may call these.
[[nodiscard]] std::optional<lock_info> inspect(const std::filesystem::path& path);
[[nodiscard]] std::optional<lock_info> inspect(const std::filesystem::path& path, error_code& ec);

/// The locks in `directory`, by name: every regular file in it that is a record, damaged ones included, inspected. Files of
/// others are left out; those that cannot be read have `lock_info::error`. Blocks for a few system calls per file.
/// Errors: those of reading the directory.
[[nodiscard]] std::vector<lock_info> list_locks(const std::filesystem::path& directory);
[[nodiscard]] std::vector<lock_info> list_locks(const std::filesystem::path& directory, error_code& ec);

/// Removes the record at `path` if, and only if, it is that of the acquisition `writer_epoch`, whether its owner lives
/// or not: an operator's decision about an owner that was inspected. True when it was removed. False when there is none,
/// or one of another epoch, or a damaged one: nothing was touched.
///
/// An owner that lives learns of its loss as of any other: at once by the kernel where it can be told, else at its next
/// heartbeat; until then it works on, beside its successor. Fence what it writes. Whoever comes after it is safe from
/// both: on a local filesystem always when the record has an `ofd` witness, else as far as nobody stands still for longer
/// than the settle time in the middle of a removal (docs/protocol.md, "Break").
///
/// Blocks for a few system calls; for 50 ms where there is no such witness, for 2 s on a shared filesystem, and for ten
/// times the settle time while others are at the removal.
/// Errors: `errc::not_a_lock_file`; EBUSY when somebody who lives is at the removal (what the exception says names the
/// holder of the token); EACCES when the record of an owner who is not dead may not be written to; EOPNOTSUPP when its
/// witness is one that this system does not have; those of `async_acquire` for the path. After an error an owner without
/// witness may have been told already that it lost.
bool break_lock(const std::filesystem::path& path, std::string_view writer_epoch);
bool break_lock(const std::filesystem::path& path, std::string_view writer_epoch, error_code& ec);

[[nodiscard]] const char* to_string(liveness l) noexcept;

}  // namespace fslock
