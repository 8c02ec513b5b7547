#include "stalling_mount.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <new>
#include <stdexcept>
#include <thread>

#include "support/child.hpp"

namespace support {
namespace {

using namespace std::chrono_literals;

constexpr auto patience = 60s;

bool is_in_path(const std::string& program) {
    return run_program({"sh", "-c", "command -v " + program + " >/dev/null"}) == 0;
}

/// Becomes the server. Between fork and exec: nothing but system calls.
[[noreturn]] void serve(int control, char** words) {
    die_with_parent();
    // Inherited without close-on-exec, as the number that was promised.
    (void)::fcntl(control, F_SETFD, 0);
    (void)::execv(words[0], words);
    ::_exit(127);
}

std::string why_nothing_can_be_mounted() {
    if (::access("/dev/fuse", F_OK) != 0) return "there is no /dev/fuse";
    if (::geteuid() != 0 && !is_in_path("fusermount3")) return "there is no fusermount3";
    try {
        const stalling_mount probe;
        return {};
    } catch (const std::exception& e) {
        return e.what();
    }
}

}  // namespace

void stalling_mount::unmap::operator()(stalling::control* page) const noexcept {
    (void)::munmap(page, sizeof(stalling::control));
}

stalling_mount::stalling_mount(stalling::naming how) {
    std::filesystem::create_directory(place_ / "mount");
    std::filesystem::create_directory(place_ / "behind");
    const int fd = ::memfd_create("stalling", MFD_CLOEXEC);
    constexpr auto size = sizeof(stalling::control);
    if (fd < 0 || ::ftruncate(fd, size) != 0) throw std::runtime_error("memfd_create");
    void* const page = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED) throw std::runtime_error("mmap");
    control_.reset(new (page) stalling::control);
    start(fd, how);
    (void)::close(fd);
    wait_until_mounted();
}

stalling_mount::~stalling_mount() {
    die();
}

void stalling_mount::start(int control, stalling::naming how) {
    std::string words[] = {STALLING_FS, std::to_string(control), std::to_string(static_cast<unsigned>(how)),
                           place_ / "behind", place_ / "mount"};
    char* command[] = {words[0].data(), words[1].data(), words[2].data(),
                       words[3].data(), words[4].data(), nullptr};
    server_ = ::fork();
    if (server_ < 0) throw std::runtime_error("fork");
    if (server_ == 0) serve(control, command);
}

void stalling_mount::wait_until_mounted() {
    const auto end = std::chrono::steady_clock::now() + patience;
    while (!control_->mounted) {
        const bool ended = ::waitpid(server_, nullptr, WNOHANG) == server_;
        if (ended) server_ = -1;
        if (ended || std::chrono::steady_clock::now() > end) {
            die();
            throw std::runtime_error("a FUSE filesystem cannot be mounted here");
        }
        std::this_thread::sleep_for(1ms);
    }
}

void stalling_mount::die() {
    if (server_ < 0) return;
    (void)::kill(server_, SIGKILL);
    while (::waitpid(server_, nullptr, 0) < 0 && errno == EINTR) {
    }
    server_ = -1;
    unmount();
}

/// The server has somebody who unmounts after its end as well, should we be killed; whoever comes second finds
/// nothing.
void stalling_mount::unmount() const {
    const auto at = place_ / "mount";
    if (::umount2(at.c_str(), MNT_DETACH) != 0 && errno == EPERM)
        (void)run_program({"fusermount3", "-u", "-z", "-q", at.native()});
}

std::vector<std::string> stalling_mount::names() const {
    std::vector<std::string> all;
    for (const auto& e : std::filesystem::directory_iterator(place_ / "behind"))
        all.push_back(e.path().filename().native());
    std::sort(all.begin(), all.end());
    return all;
}

std::size_t stalling_mount::open_files() const {
    std::size_t count = 0;
    const auto below = (place_ / "mount").native() + '/';
    for (const auto& e : std::filesystem::directory_iterator("/proc/self/fd")) {
        std::error_code gone;
        count += std::filesystem::read_symlink(e.path(), gone).native().starts_with(below) ? 1 : 0;
    }
    return count;
}

void stalling_mount::stall(std::initializer_list<stalling::call> which) {
    std::uint32_t bits = 0;
    for (const auto one : which) bits |= stalling::bit_of(one);
    control_->stalled = bits;
}

bool stalling_mount::hangs() const {
    return std::any_of(control_->hanging.begin(), control_->hanging.end(),
                       [](const auto& n) { return n != 0; });
}

boost::test_tools::assertion_result fuse_mounts(boost::unit_test::test_unit_id) {
    static const auto problem = why_nothing_can_be_mounted();
    boost::test_tools::assertion_result r(problem.empty());
    if (!r) r.message() << problem;
    return r;
}

}  // namespace support
