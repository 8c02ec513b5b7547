// What the program exits with, and how it says that something went wrong.
#pragma once

#include <string>
#include <system_error>

namespace cli {

/// Of the program itself; `run` passes its command's status on. Beyond 63 as in sysexits.h, like flock(1).
enum exit_status : int {
    success = 0,
    conflict = 1,        ///< `run`, `wait`: not in time; `break`: nothing to remove; `status`: held
    dead_owner = 2,      ///< `status`
    usage = 64,          ///< what was asked for makes no sense
    not_a_lock = 65,     ///< what is at the path
    not_there = 66,      ///< what was named
    unavailable = 69,    ///< somebody is in the way; `run`: the lock was lost
    system_failure = 71,
    io_failure = 74,
    not_permitted = 77,
    not_executable = 126,
    not_found = 127,
    by_signal = 128,     ///< and its number
};

[[nodiscard]] int status_for(std::error_code error) noexcept;

/// Says on standard error what went wrong with `what`, and what to do about it as far as that is known. Returns the
/// status for it.
int complain(const std::string& what, std::error_code error);
/// The same without an error code. Control characters of what was named reach no terminal.
void say(const std::string& text);

}  // namespace cli
