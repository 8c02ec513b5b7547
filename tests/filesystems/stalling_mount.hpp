// A mount that hangs when the test says so.
#pragma once

#include <sys/types.h>

#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "stalling_fs.hpp"
#include "support/directory.hpp"

namespace support {

/// Passes everything through to a directory behind it, where the test sees what is on disk while the mount
/// hangs.
///
/// A process serves it. The destructor ends that, which ends every call that hangs there, and unmounts. If the
/// test is killed, the process dies with it, and its end unmounts as well.
class stalling_mount {
 public:
    /// Throws when nothing can be mounted.
    explicit stalling_mount(stalling::naming how = stalling::naming::links);
    stalling_mount(const stalling_mount&) = delete;
    stalling_mount& operator=(const stalling_mount&) = delete;
    ~stalling_mount();

    /// A file, seen through the mount.
    [[nodiscard]] std::filesystem::path operator/(const std::string& name) const {
        return place_ / "mount" / name;
    }
    /// The same file, past the mount.
    [[nodiscard]] std::filesystem::path behind(const std::string& name) const {
        return place_ / "behind" / name;
    }
    /// The names of all that is behind the mount, sorted.
    [[nodiscard]] std::vector<std::string> names() const;
    /// Of the calling process: how many files it has open through the mount.
    [[nodiscard]] std::size_t open_files() const;

    /// From now on these calls hang.
    void stall(std::initializer_list<stalling::call> which);
    void stall_everything() { control_->stalled = ~0U; }
    /// So many calls pass from now on, then everything hangs.
    void stall_after(int calls) { control_->passing = calls; }
    /// Ends all that hangs; what comes afterwards passes.
    void go_on() {
        control_->stalled = 0;
        control_->passing = stalling::for_ever;
    }
    /// Whether a call hangs at this moment.
    [[nodiscard]] bool hangs() const;
    /// How many of these calls have arrived.
    [[nodiscard]] std::uint64_t count(stalling::call which) const {
        return control_->made.at(static_cast<std::size_t>(which));
    }

    /// The filesystem dies, and the mount with it: calls fail from now on, also those that hang.
    void die();

 private:
    void start(int control, stalling::naming how);
    void wait_until_mounted();
    void unmount() const;

    struct unmap {
        void operator()(stalling::control* page) const noexcept;
    };

    directory place_;
    std::unique_ptr<stalling::control, unmap> control_;
    pid_t server_ = -1;
};

/// Precondition: a process of ours may mount a filesystem of its own.
boost::test_tools::assertion_result fuse_mounts(boost::unit_test::test_unit_id);

}  // namespace support
