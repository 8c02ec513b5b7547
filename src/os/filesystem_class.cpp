#include "filesystem_class.hpp"

#include <algorithm>
#include <iterator>

#if defined(__linux__)
#include <sys/vfs.h>
#elif defined(__APPLE__) || defined(__FreeBSD__) || defined(__OpenBSD__) || defined(__DragonFly__)
#include <sys/mount.h>
#include <sys/param.h>
#endif

#include "retry.hpp"

namespace fslock::os {

#if defined(__linux__)

namespace {

/// statfs(2), linux/magic.h and the filesystems' own headers. Block devices, memory, and layers over those.
constexpr unsigned long local_types[] = {
    0xEF53,      // ext2, ext3, ext4
    0x58465342,  // xfs
    0x9123683E,  // btrfs
    0x01021994,  // tmpfs
    0x858458F6,  // ramfs
    0x2FC12FC1,  // zfs
    0xF2F52010,  // f2fs
    0x794C7630,  // overlay
    0x4D44,      // vfat
    0x2011BAB0,  // exfat
    0x7366746E,  // ntfs3
    0x3153464A,  // jfs
    0x52654973,  // reiserfs
    0xCA451A4E,  // bcachefs
    0xF15F,      // ecryptfs
    0x482B,      // hfsplus
    0x15013346,  // udf
    0x3434,      // nilfs2
};

}  // namespace

result<fs_class> filesystem_class(const char* path) {
    struct statfs facts {};
    if (retry([&] { return ::statfs(path, &facts); }) != 0) return last_error();
    const auto type = static_cast<unsigned long>(facts.f_type) & 0xFFFFFFFFUL;
    const bool known = std::find(std::begin(local_types), std::end(local_types), type) != std::end(local_types);
    return known ? fs_class::local : fs_class::shared;
}

#elif defined(MNT_LOCAL)

result<fs_class> filesystem_class(const char* path) {
    struct statfs facts {};
    if (retry([&] { return ::statfs(path, &facts); }) != 0) return last_error();
    return (facts.f_flags & MNT_LOCAL) != 0 ? fs_class::local : fs_class::shared;
}

#else

result<fs_class> filesystem_class(const char*) { return fs_class::shared; }

#endif

}  // namespace fslock::os
