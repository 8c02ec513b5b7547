// Directories of tests in memory, where there is such a filesystem: thousands are made.
#pragma once

#include <sys/statfs.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cstdlib>

namespace faults {

struct in_memory {
    in_memory() {
        constexpr const char* memory = "/dev/shm";
        constexpr unsigned long tmpfs = 0x01021994;  // TMPFS_MAGIC, linux/magic.h
        struct statfs facts {};
        const bool there = ::statfs(memory, &facts) == 0 && static_cast<unsigned long>(facts.f_type) == tmpfs &&
                           ::access(memory, W_OK | X_OK) == 0;
        if (there) (void)::setenv("FSLOCK_TEST_DIR", memory, 0);
    }
};
BOOST_TEST_GLOBAL_CONFIGURATION(in_memory);

}  // namespace faults
