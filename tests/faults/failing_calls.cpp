#include "failing_calls.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <mutex>

namespace faults::calls {
namespace {

struct state {
    std::mutex mutex;
    bool armed = false;
    plan what;
    unsigned counted = 0;
    unsigned failed = 0;
    std::string first;
    std::set<int> codes;
};

state& now() {
    static auto& s = *new state;
    return s;
}

/// Whether this call fails; then with what.
int fails(const char* name, int usual) {
    auto& s = now();
    const std::lock_guard lock(s.mutex);
    if (!s.armed || (!s.what.only.empty() && s.what.only != name)) return 0;
    ++s.counted;
    const bool hit = s.counted == s.what.at;
    if (hit) s.first = name;
    if (!hit && !(s.what.for_ever && s.first == name)) return 0;
    ++s.failed;
    const int code = s.what.code != 0 ? s.what.code : usual;
    s.codes.insert(code);
    return code;
}

template <class F>
F* real(const char* name) {
    return reinterpret_cast<F*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

void arm(const plan& p) {
    auto& s = now();
    const std::lock_guard lock(s.mutex);
    s.armed = true;
    s.what = p;
    s.counted = s.failed = 0;
    s.first.clear();
    s.codes.clear();
}

void disarm() {
    auto& s = now();
    const std::lock_guard lock(s.mutex);
    s.armed = false;
}

unsigned counted() {
    const std::lock_guard lock(now().mutex);
    return now().counted;
}

unsigned failed() {
    const std::lock_guard lock(now().mutex);
    return now().failed;
}

std::string first_failed() {
    const std::lock_guard lock(now().mutex);
    return now().first;
}

std::set<int> codes() {
    const std::lock_guard lock(now().mutex);
    return now().codes;
}

}  // namespace faults::calls

using faults::calls::fails;
using faults::calls::real;

namespace {

int failure(int code) {
    errno = code;
    return -1;
}

mode_t mode_in(int flags, va_list more) {
    const bool creates = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
    return creates ? static_cast<mode_t>(va_arg(more, int)) : 0;
}

}  // namespace

// Defined under names of our own that the linker knows as those of the C library: its headers declare some of them
// under either name, with and without large files.
#define STANDS_FOR(name) __asm__(name) __attribute__((visibility("default"), used))

#define CALL(returns, name, code, parameters, arguments)                                   \
    extern "C" returns our_##name parameters STANDS_FOR(#name);                            \
    returns our_##name parameters {                                                        \
        static auto* const next = real<returns parameters>(#name);                         \
        if (const int failed = fails(#name, code)) return failure(failed);                 \
        return next arguments;                                                             \
    }

CALL(ssize_t, pread64, EIO, (int fd, void* into, size_t n, off_t at), (fd, into, n, at))
CALL(ssize_t, pwrite64, ENOSPC, (int fd, const void* from, size_t n, off_t at), (fd, from, n, at))
CALL(int, fstat64, EIO, (int fd, struct stat* s), (fd, s))
CALL(int, stat64, EIO, (const char* path, struct stat* s), (path, s))
CALL(int, lstat64, EIO, (const char* path, struct stat* s), (path, s))
CALL(int, statfs64, EIO, (const char* path, struct statfs* s), (path, s))
CALL(int, linkat, EDQUOT, (int a, const char* from, int b, const char* to, int flags), (a, from, b, to, flags))
CALL(int, link, EDQUOT, (const char* from, const char* to), (from, to))
CALL(int, rename, EIO, (const char* from, const char* to), (from, to))
CALL(int, unlink, EIO, (const char* path), (path))
CALL(int, futimens, EIO, (int fd, const struct timespec* times), (fd, times))
CALL(int, fsync, EIO, (int fd), (fd))
CALL(int, flock, ENOLCK, (int fd, int how), (fd, how))
CALL(int, inotify_init1, EMFILE, (int flags), (flags))
CALL(int, inotify_add_watch, ENOSPC, (int fd, const char* path, unsigned mask), (fd, path, mask))
CALL(int, timerfd_create, EMFILE, (int clock, int flags), (clock, flags))
CALL(int, epoll_create1, EMFILE, (int flags), (flags))

extern "C" int our_open64(const char* path, int flags, ...) STANDS_FOR("open64");
int our_open64(const char* path, int flags, ...) {
    static auto* const next = real<int(const char*, int, ...)>("open64");
    va_list more;
    va_start(more, flags);
    const mode_t mode = mode_in(flags, more);
    va_end(more);
    if (const int failed = fails("open64", EMFILE)) return failure(failed);
    return next(path, flags, mode);
}

/// Locks only.
extern "C" int our_fcntl64(int fd, int command, ...) STANDS_FOR("fcntl64");
int our_fcntl64(int fd, int command, ...) {
    static auto* const next = real<int(int, int, ...)>("fcntl64");
    va_list more;
    va_start(more, command);
    void* const argument = va_arg(more, void*);
    va_end(more);
    const bool locks = command == F_OFD_SETLK || command == F_OFD_GETLK;
    if (const int failed = locks ? fails("fcntl64", ENOLCK) : 0) return failure(failed);
    return next(fd, command, argument);
}

/// New descriptors only: the rest cannot fail for a reason that is not a bug.
extern "C" int our_epoll_ctl(int fd, int operation, int what, struct epoll_event* event) STANDS_FOR("epoll_ctl");
int our_epoll_ctl(int fd, int operation, int what, struct epoll_event* event) {
    static auto* const next = real<int(int, int, int, struct epoll_event*)>("epoll_ctl");
    char path[40];
    char file[40] = {};
    std::snprintf(path, sizeof path, "/proc/self/fd/%d", what);
    (void)::readlink(path, file, sizeof file - 1);
    // Asio looks at nothing that its own timer and interrupter answer.
    const bool watches = operation == EPOLL_CTL_ADD &&
                         (std::strstr(file, "inotify") != nullptr || std::strstr(file, "pidfd") != nullptr);
    if (const int failed = watches ? fails("epoll_ctl", ENOSPC) : 0) return failure(failed);
    return next(fd, operation, what, event);
}

extern "C" long our_syscall(long number, ...) STANDS_FOR("syscall");
long our_syscall(long number, ...) {
    static auto* const next = real<long(long, ...)>("syscall");
    va_list more;
    va_start(more, number);
    long a[6];
    for (auto& argument : a) argument = va_arg(more, long);
    va_end(more);
    int failed = 0;
    if (number == SYS_pidfd_open) failed = fails("pidfd_open", EMFILE);
    if (number == SYS_renameat2) failed = fails("renameat2", EIO);
    if (failed != 0) return failure(failed);
    return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

extern "C" int our_pthread_create(pthread_t* id, const pthread_attr_t* how, void* (*body)(void*), void* argument)
    STANDS_FOR("pthread_create");
int our_pthread_create(pthread_t* id, const pthread_attr_t* how, void* (*body)(void*), void* argument) {
    static auto* const next =
        real<int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>("pthread_create");
    if (const int failed = fails("pthread_create", EAGAIN)) return failed;
    return next(id, how, body, argument);
}
