// inotify(7) and pidfd_open(2).
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <cstring>

#include "changes.hpp"
#include "retry.hpp"

namespace fslock::os {
namespace {

/// Reading opens read-only and beats only write: neither is told, so waiters and owners do not wake each other.
constexpr std::uint32_t record_events = IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF | IN_CLOSE_WRITE | IN_DONT_FOLLOW;
constexpr std::uint32_t directory_events = IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;

result<int> descriptor_or_error(int fd) {
    if (fd < 0) return last_error();
    return fd;
}

}  // namespace

result<int> open_changes() { return descriptor_or_error(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)); }

result<int> watch(int changes, const std::string& path, watched what) {
    const auto events = what == watched::record ? record_events : directory_events;
    return descriptor_or_error(retry([&] { return ::inotify_add_watch(changes, path.c_str(), events); }));
}

void unwatch(int changes, int id) noexcept { (void)::inotify_rm_watch(changes, id); }

news read_changes(int changes) {
    news all;
    alignas(inotify_event) char buffer[16 * 1024];
    for (;;) {
        const auto n = retry([&] { return ::read(changes, buffer, sizeof buffer); });
        if (n <= 0) return all;
        for (const char* at = buffer; at < buffer + n;) {
            inotify_event e;
            std::memcpy(&e, at, sizeof e);
            if ((e.mask & IN_Q_OVERFLOW) != 0) {
                all.overflow = true;
            } else {
                change c;
                c.id = e.wd;
                c.ended = (e.mask & IN_IGNORED) != 0;
                all.changes.push_back(c);
            }
            at += sizeof e + e.len;
        }
        if (static_cast<std::size_t>(n) + sizeof(inotify_event) + NAME_MAX + 1 < sizeof buffer) return all;  // no more
    }
}

/// Closed by exec: the kernel sets that flag itself.
result<int> open_process(int pid) { return descriptor_or_error(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))); }

void close_descriptor(int fd) noexcept { (void)::close(fd); }

}  // namespace fslock::os
