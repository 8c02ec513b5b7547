// The facilities that not every POSIX system has. One file implements them for Linux (linux.cpp), one answers for
// systems without (plain.cpp); the build takes one of the two.
#pragma once

#include <sys/types.h>

#include <string>
#include <system_error>

#include "world.hpp"

namespace fslock::os::system {

/// A descriptor of a file without a name, or -1 and `errno`: EOPNOTSUPP where there are none.
[[nodiscard]] int open_unnamed(const char* directory, mode_t mode);
/// Gives the unnamed file behind `fd` a name, unless it is taken.
[[nodiscard]] std::error_code link_unnamed(int fd, const char* to);
/// EINVAL where the system has no such rename.
[[nodiscard]] std::error_code rename_exclusive(const char* from, const char* to);

/// The strongest lock that proves life.
[[nodiscard]] witness_kind strongest_witness() noexcept;
/// Locks that belong to an open file description, on single bytes; `unknown` where the system has none.
[[nodiscard]] lock_state lock_byte_of(int fd, lock_byte which) noexcept;
[[nodiscard]] lock_state probe_byte_of(int fd, lock_byte which) noexcept;
[[nodiscard]] std::error_code unlock_byte_of(int fd, lock_byte which) noexcept;
/// See `world::show_waiting`.
void show_waiting(int fd) noexcept;
[[nodiscard]] bool is_waited_for(int fd) noexcept;

[[nodiscard]] identity read_identity();
[[nodiscard]] process_facts look_up(int pid);

}  // namespace fslock::os::system
