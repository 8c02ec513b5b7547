// The facilities of Linux: unnamed files, exclusive rename, open-file-description locks, pidfds, /proc.
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "retry.hpp"
#include "system.hpp"

namespace fslock::os::system {
namespace {

/// The inode of the initial PID namespace, fixed by the kernel (PROC_PID_INIT_INO, include/linux/proc_ns.h).
constexpr std::uint64_t initial_pid_namespace = 0xEFFFFFFC;

constexpr unsigned no_replace = 1;  // RENAME_NOREPLACE, renameat2(2)

class descriptor {
 public:
    explicit descriptor(int fd) noexcept : fd_(fd) {}
    descriptor(const descriptor&) = delete;
    descriptor& operator=(const descriptor&) = delete;
    ~descriptor() {
        if (fd_ >= 0) (void)::close(fd_);
    }
    explicit operator bool() const noexcept { return fd_ >= 0; }
    [[nodiscard]] int get() const noexcept { return fd_; }

 private:
    int fd_;
};

/// The beginning of a file in /proc, or nothing.
std::string read_proc(const char* path) {
    const descriptor file(retry([&] { return ::open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY); }));
    char text[4096];
    const auto n = file ? retry([&] { return ::read(file.get(), text, sizeof text); }) : -1;
    return n > 0 ? std::string(text, static_cast<std::size_t>(n)) : std::string();
}

/// Field 22 of a stat line (proc(5)): counted from the last `)`, since a process may have any name.
std::optional<std::uint64_t> start_time_in(std::string_view stat) {
    const auto name_end = stat.rfind(')');
    if (name_end == std::string_view::npos) return {};
    auto rest = stat.substr(name_end + 1);
    constexpr int fields_before = 19;  // state is field 3
    for (int i = 0; i <= fields_before; ++i) {
        const auto begin = rest.find_first_not_of(' ');
        if (begin == std::string_view::npos) return {};
        rest.remove_prefix(begin);
        if (i < fields_before) rest.remove_prefix(std::min(rest.find(' '), rest.size()));
    }
    std::uint64_t ticks = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), ticks);
    if (error != std::errc{} || end == rest.data()) return {};
    return ticks;
}

/// /proc shows the processes of the namespace that it was mounted in. It is ours if we have one pid there and it is
/// the one we know (pid_namespaces(7): NSpid lists a pid for each nested namespace).
bool proc_is_of_our_namespace(int pid) {
    const auto status = read_proc("/proc/self/status");
    const auto at = status.find("\nNSpid:");
    if (at == std::string::npos) {
        char self[32];
        const auto n = ::readlink("/proc/self", self, sizeof self);
        return n > 0 && std::string_view(self, static_cast<std::size_t>(n)) == std::to_string(pid);
    }
    const auto line = std::string_view(status).substr(at + 7, status.find('\n', at + 1) - at - 7);
    const auto first = line.find_first_not_of(" \t");
    return first != std::string_view::npos && line.substr(first) == std::to_string(pid);
}

/// In a time namespace with an offset, ticks since boot are shifted (time_namespaces(7)).
bool has_time_offset() {
    const auto offsets = read_proc("/proc/self/timens_offsets");
    return offsets.find_first_of("123456789") != std::string::npos;
}

/// Whether start times read here can be compared with others. Asked anew each time: a child may be in other
/// namespaces and have the pid of its parent.
bool start_times_count() { return proc_is_of_our_namespace(::getpid()) && !has_time_offset(); }

std::optional<std::uint64_t> start_time_of(int pid) {
    if (!start_times_count()) return {};
    char path[48];
    std::snprintf(path, sizeof path, "/proc/%d/stat", pid);
    return start_time_in(read_proc(path));
}

std::string first_word(std::string text) {
    text.erase(std::min(text.find_first_of(" \n"), text.size()));
    return text;
}

struct flock byte_range(off_t byte, short type) {
    struct flock range {};
    range.l_type = type;
    range.l_whence = SEEK_SET;
    range.l_start = byte;
    range.l_len = 1;
    return range;
}

struct flock byte_range(lock_byte which, short type) { return byte_range(static_cast<off_t>(which), type); }

constexpr off_t waiting_byte = 2;

/// A thread that is no process: kill(2) answers for threads as well.
bool is_thread_only(int pid) {
    char path[48];
    std::snprintf(path, sizeof path, "/proc/%d/status", pid);
    const auto status = read_proc(path);
    const auto at = status.find("\nTgid:");
    return at != std::string::npos && std::atoi(status.c_str() + at + 6) != pid;
}

process_facts::state look_up_without_pidfd(int pid) {
    if (::kill(pid, 0) != 0 && errno == ESRCH) return process_facts::state::gone;
    return is_thread_only(pid) ? process_facts::state::gone : process_facts::state::exists;
}

/// pidfd_open(2): ESRCH, no such process; EINVAL (ENOENT from Linux 6.9 on), the pid of a thread. A pidfd becomes
/// readable when the process has ended, reaped or not.
process_facts::state life_of(int pid) {
    const descriptor process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    if (!process) {
        if (errno == ESRCH || errno == EINVAL || errno == ENOENT) return process_facts::state::gone;
        if (errno == ENOSYS || errno == EPERM) return look_up_without_pidfd(pid);
        return process_facts::state::unknown;
    }
    pollfd ended{process.get(), POLLIN, 0};
    const auto n = retry([&] { return ::poll(&ended, 1, 0); });
    if (n < 0) return process_facts::state::unknown;
    return n == 0 ? process_facts::state::exists : process_facts::state::gone;
}

std::error_code link_through_proc(int fd, const char* to) {
    constexpr std::string_view descriptors = "/proc/self/fd/";
    char from[32];
    auto* const number = std::copy(descriptors.begin(), descriptors.end(), from);
    *std::to_chars(number, from + sizeof from - 1, fd).ptr = '\0';
    return outcome(retry([&] { return ::linkat(AT_FDCWD, from, AT_FDCWD, to, AT_SYMLINK_FOLLOW); }));
}

}  // namespace

int open_unnamed(const char* directory, mode_t mode) {
    return retry([&] { return ::open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, mode); });
}

/// By the descriptor itself, without a walk through /proc, where the kernel lets us: it says ENOENT unless we have
/// CAP_DAC_READ_SEARCH (linkat(2)) or, since Linux 6.10, opened the file with the same credentials.
std::error_code link_unnamed(int fd, const char* to) {
    static std::atomic<bool> may_be_linked{true};
    if (may_be_linked.load(std::memory_order_relaxed)) {
        const auto error = outcome(retry([&] { return ::linkat(fd, "", AT_FDCWD, to, AT_EMPTY_PATH); }));
        if (error != std::errc::no_such_file_or_directory) return error;
    }
    const auto error = link_through_proc(fd, to);
    // Else it may have been the directory that was not there.
    if (!error || error == std::errc::file_exists) may_be_linked.store(false, std::memory_order_relaxed);
    return error;
}

std::error_code rename_exclusive(const char* from, const char* to) {
    return outcome(
        retry([&] { return ::syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, no_replace); }));
}

witness_kind strongest_witness() noexcept { return witness_kind::ofd; }

lock_state lock_byte_of(int fd, lock_byte which) noexcept {
    auto range = byte_range(which, F_WRLCK);
    if (retry([&] { return ::fcntl(fd, F_OFD_SETLK, &range); }) == 0) return lock_state::free;
    return errno == EAGAIN || errno == EACCES ? lock_state::held : lock_state::unknown;
}

lock_state probe_byte_of(int fd, lock_byte which) noexcept {
    auto range = byte_range(which, F_RDLCK);
    if (retry([&] { return ::fcntl(fd, F_OFD_GETLK, &range); }) != 0) return lock_state::unknown;
    return range.l_type == F_UNLCK ? lock_state::free : lock_state::held;
}

std::error_code unlock_byte_of(int fd, lock_byte which) noexcept {
    auto range = byte_range(which, F_UNLCK);
    return outcome(retry([&] { return ::fcntl(fd, F_OFD_SETLK, &range); }));
}

void show_waiting(int fd) noexcept {
    auto range = byte_range(waiting_byte, F_RDLCK);
    (void)retry([&] { return ::fcntl(fd, F_OFD_SETLK, &range); });
}

bool is_waited_for(int fd) noexcept {
    auto range = byte_range(waiting_byte, F_WRLCK);
    return retry([&] { return ::fcntl(fd, F_OFD_GETLK, &range); }) == 0 && range.l_type != F_UNLCK;
}

identity read_identity() {
    identity me;
    me.pid = ::getpid();
    utsname names{};
    if (::uname(&names) == 0) me.nodename = names.nodename;
    if (me.nodename.empty()) me.nodename = "unknown-host";
    me.hostname = me.nodename;
    struct stat ns {};
    if (::stat("/proc/self/ns/pid", &ns) == 0 && proc_is_of_our_namespace(me.pid)) {
        me.pid_ns = ns.st_ino;
        if (ns.st_ino != initial_pid_namespace) me.hostname = me.nodename + '/' + std::to_string(ns.st_ino);
    }
    me.boot_id = first_word(read_proc("/proc/sys/kernel/random/boot_id"));
    me.start_time = start_time_of(me.pid);
    return me;
}

process_facts look_up(int pid) {
    process_facts facts;
    facts.life = life_of(pid);
    if (facts.life == process_facts::state::exists) facts.start_time = start_time_of(pid);
    return facts;
}

}  // namespace fslock::os::system
