// What can be expected of the filesystem that the tests' directories are on.
#pragma once

#include <sys/vfs.h>

#include <boost/test/unit_test.hpp>

#include "directory.hpp"
#include "fslock/acquire.hpp"

namespace support {

/// Whether the kernel itself keeps the files, so that its locks and events tell of every process. Asked without the
/// library, whose own list is longer.
inline bool on_local_filesystem() {
    const directory d;
    struct statfs facts {};
    if (::statfs(d.path().c_str(), &facts) != 0) return false;
    switch (static_cast<unsigned long>(facts.f_type) & 0xFFFFFFFFUL) {
        case 0xEF53:      // ext
        case 0x58465342:  // xfs
        case 0x9123683E:  // btrfs
        case 0x01021994:  // tmpfs
        case 0x794C7630:  // overlay
        case 0x2FC12FC1:  // zfs
        case 0xF2F52010:  // f2fs
        case 0x4D44:      // vfat
        case 0x2011BAB0:  // exfat
            return true;
        default: return false;
    }
}

/// Precondition: locks have a witness, and waiters are woken by the kernel.
inline boost::test_tools::assertion_result local_filesystem(boost::unit_test::test_unit_id) {
    boost::test_tools::assertion_result possible(on_local_filesystem());
    possible.message() << "the directory of the tests is on a filesystem that counts as shared";
    return possible;
}

/// Whether records there carry locks on bytes. Systems without those cannot tell waiters of changes either, and an owner
/// does not see who waits.
inline bool has_byte_locks() {
    const directory d;
    const auto lock = fslock::acquire(d / "x");
    return read_file(d / "x").find("\"ofd\"") != std::string::npos;
}

}  // namespace support
