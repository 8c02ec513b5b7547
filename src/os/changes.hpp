// Being told by the kernel that something happened to a file or a process. Hints: what they miss costs a poll.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "result.hpp"

namespace fslock::os {

enum class watched : std::uint8_t {
    record,    ///< unlinked, renamed, given other attributes, or closed by somebody who could write
    directory  ///< the directory itself was renamed or removed; not what happens in it
};

struct change {
    int id = 0;          ///< of the watch
    bool ended = false;  ///< the file is gone: so is the watch
};

/// Some of what happened.
struct news {
    std::vector<change> changes;
    bool overflow = false;  ///< there was more than the kernel could keep: anything may have happened
};

/// A descriptor that becomes readable when something happened. ENOSYS where the system has none; EMFILE when this
/// user has too many (inotify(7), max_user_instances). The caller owns it.
[[nodiscard]] result<int> open_changes();
/// Begins to watch what is at `path`; the name of the watch, one and the same for one and the same file. Of a record's
/// path a symbolic link at the end is not followed.
/// Errors: ENOSPC when this user watches too many files (max_user_watches), and those of a path.
[[nodiscard]] result<int> watch(int changes, const std::string& path, watched what);
void unwatch(int changes, int id) noexcept;
/// All that is there, without waiting.
[[nodiscard]] news read_changes(int changes);

/// A descriptor that becomes readable when the process has ended, reaped or not (pidfd_open(2)); ENOSYS where the
/// system has none. The caller owns it.
[[nodiscard]] result<int> open_process(int pid);

void close_descriptor(int fd) noexcept;

}  // namespace fslock::os
