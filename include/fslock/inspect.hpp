// Looking at a lock without wanting it.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>

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

    owner_info owner;
    liveness verdict = liveness::unknown;
    fslock::proof proof = fslock::proof::none;  ///< on what the verdict rests
    std::chrono::milliseconds silence{0};       ///< since the last heartbeat, by the filesystem's clock
    std::chrono::milliseconds age{0};           ///< since the acquisition, by the owner's clock and ours
    bool malformed = false;                     ///< the record is damaged; `owner` is empty
};

/// Reads and judges the record at `path` as a contender would on its first look, for status displays; blocks for a
/// few system calls. Changes nothing about the lock; on a shared filesystem it makes and removes a file
/// beside it, to ask for the time there. Empty when there is no record.
/// Errors: those of `async_acquire` for the path and for what is there.
[[nodiscard]] std::optional<lock_info> inspect(const std::filesystem::path& path);
[[nodiscard]] std::optional<lock_info> inspect(const std::filesystem::path& path, error_code& ec);

[[nodiscard]] const char* to_string(liveness l) noexcept;

}  // namespace fslock
