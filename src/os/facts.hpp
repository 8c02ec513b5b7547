// What `stat` says, in the words of the world.
#pragma once

#include <sys/stat.h>

#include <ctime>

#include "world.hpp"

namespace fslock::os {

[[nodiscard]] inline file_kind kind_of(mode_t mode) noexcept {
    if (S_ISREG(mode)) return file_kind::regular;
    if (S_ISDIR(mode)) return file_kind::directory;
    return S_ISLNK(mode) ? file_kind::symlink : file_kind::other;
}

[[nodiscard]] inline std::int64_t nanoseconds(const timespec& t) noexcept {
    return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

[[nodiscard]] inline file_facts facts_from(const struct stat& s) noexcept {
    file_facts f;
    f.device = s.st_dev;
    f.inode = s.st_ino;
    f.links = s.st_nlink;
    f.size = static_cast<std::uint64_t>(s.st_size);
#if defined(__APPLE__)
    f.modified_ns = nanoseconds(s.st_mtimespec);
#else
    f.modified_ns = nanoseconds(s.st_mtim);
#endif
    f.kind = kind_of(s.st_mode);
    return f;
}

}  // namespace fslock::os
