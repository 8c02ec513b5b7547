// Whether a directory is a place for locks.
#pragma once

#include <chrono>
#include <filesystem>

#include "detail/asio.hpp"

namespace fslock {

/// What became of trying one thing.
struct trial {
    trial() = default;

    bool works = false;
    error_code error;  ///< Why not, as far as the system said.
};

/// What locks rely on, tried in one directory at one time. What does not work is done without, or in another way.
struct directory_report {
    directory_report() = default;

    bool local = false;         ///< One kernel is behind the filesystem: kernel locks and its clock are proof.
    trial files;                ///< Files can be made and removed. Without it there are no locks here.
    trial unnamed_files;        ///< Files without a name: what is prepared leaves nothing behind.
    trial hard_links;           ///< A record appears whole, and never over another.
    trial exclusive_rename;     ///< The same, where there are no hard links.
    const char* witness = "";   ///< The kind of kernel lock that proves an owner's life: "ofd", "flock" or none.
    trial witness_holds;        ///< It is seen as held, and as free once it is given back.
    trial events;               ///< The kernel tells of a record that is removed.
    trial clock;                ///< The filesystem has a clock that can be asked.
    std::chrono::nanoseconds clock_ahead{0};  ///< How far that is ahead of ours.
};

/// Tries in `directory` what locks there rely on. Makes files with the names of temps, and removes them; blocks for some
/// system calls.
/// Errors: those of looking at the directory; thrown as `system_error` without an `error_code`. That something does not
/// work is no error.
[[nodiscard]] directory_report diagnose(const std::filesystem::path& directory);
[[nodiscard]] directory_report diagnose(const std::filesystem::path& directory, error_code& ec);

}  // namespace fslock
