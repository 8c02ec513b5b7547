// A filesystem that passes every call through to another directory, and holds up those that its test wants to
// hang.
//
// Usage: stalling_fs CONTROL NAMING BEHIND MOUNTPOINT
// CONTROL is a descriptor of a `stalling::control`, NAMING the number of a `stalling::naming`.
//
// A program of its own: whatever hangs in a call ends when this process ends, since the kernel then gives the
// connection up. What is cached nowhere reaches it: no attributes, no names, no contents.
#define FUSE_USE_VERSION 312
#include "stalling_fs.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fuse3/fuse.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace {

using namespace std::chrono_literals;
using stalling::call;

// A test that waits inside a hung call by mistake fails late, instead of never.
constexpr auto longest_stall = 2min;

constexpr unsigned no_replace = 1;  // RENAME_NOREPLACE, renameat2(2)

stalling::control* shared = nullptr;
stalling::naming names_by = stalling::naming::links;
int behind = -1;

bool is_stalled(call which) {
    return (shared->stalled & stalling::bit_of(which)) != 0 || shared->passing < 0;
}

/// Counts a call, and holds it up for as long as the test wants, or until its caller is killed: then -EINTR. A
/// caller cannot die before its call is answered.
int arrive(call which) {
    const auto index = static_cast<std::size_t>(which);
    ++shared->made.at(index);
    if (shared->passing != stalling::for_ever) --shared->passing;
    if (!is_stalled(which)) return 0;
    ++shared->hanging.at(index);
    const auto end = std::chrono::steady_clock::now() + longest_stall;
    while (is_stalled(which) && fuse_interrupted() == 0 && std::chrono::steady_clock::now() < end)
        std::this_thread::sleep_for(1ms);
    --shared->hanging.at(index);
    return fuse_interrupted() != 0 ? -EINTR : 0;
}

int outcome(long n) {
    return n == -1 ? -errno : static_cast<int>(n);
}

/// Below the directory behind.
const char* relative(const char* path) {
    return path[1] == '\0' ? "." : path + 1;
}

int fd_of(const fuse_file_info* open) {
    return static_cast<int>(open->fh);
}

void* init(fuse_conn_info*, fuse_config* config) {
    config->use_ino = 1;      // two names of one file have one inode number
    config->hard_remove = 1;  // an open file that is removed is gone, instead of renamed
    config->nullpath_ok = 1;
    config->attr_timeout = 0;
    config->entry_timeout = 0;
    config->negative_timeout = 0;
    shared->mounted = true;
    return nullptr;
}

int getattr(const char* path, struct stat* into, fuse_file_info* open) {
    if (const int error = arrive(call::getattr); error != 0) return error;
    if (open != nullptr) return outcome(::fstat(fd_of(open), into));
    return outcome(::fstatat(behind, relative(path), into, AT_SYMLINK_NOFOLLOW));
}

int readdir(const char* path, void* into, fuse_fill_dir_t fill, off_t, fuse_file_info*, fuse_readdir_flags) {
    if (const int error = arrive(call::readdir); error != 0) return error;
    const int fd = ::openat(behind, relative(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR* const all = fd >= 0 ? ::fdopendir(fd) : nullptr;
    if (all == nullptr) return -errno;
    while (const dirent* const one = ::readdir(all))
        (void)fill(into, one->d_name, nullptr, 0, fuse_fill_dir_flags{});
    (void)::closedir(all);
    return 0;
}

int open_at(const char* path, fuse_file_info* open, mode_t mode) {
    const int fd = ::openat(behind, relative(path), open->flags | O_CLOEXEC | O_NOFOLLOW, mode);
    if (fd < 0) return -errno;
    open->fh = static_cast<std::uint64_t>(fd);
    open->direct_io = 1;
    return 0;
}

int open(const char* path, fuse_file_info* open) {
    if (const int error = arrive(call::open); error != 0) return error;
    return open_at(path, open, 0);
}

int create(const char* path, mode_t mode, fuse_file_info* open) {
    if (const int error = arrive(call::create); error != 0) return error;
    return open_at(path, open, mode);
}

int read(const char*, char* into, std::size_t size, off_t from, fuse_file_info* open) {
    if (const int error = arrive(call::read); error != 0) return error;
    return outcome(::pread(fd_of(open), into, size, from));
}

int write(const char*, const char* data, std::size_t size, off_t at, fuse_file_info* open) {
    if (const int error = arrive(call::write); error != 0) return error;
    return outcome(::pwrite(fd_of(open), data, size, at));
}

int flush(const char*, fuse_file_info*) {
    return arrive(call::flush);
}

int fsync(const char*, int, fuse_file_info* open) {
    if (const int error = arrive(call::fsync); error != 0) return error;
    return outcome(::fsync(fd_of(open)));
}

int release(const char*, fuse_file_info* open) {
    return outcome(::close(fd_of(open)));
}

int utimens(const char* path, const timespec times[2], fuse_file_info* open) {
    if (const int error = arrive(call::utimens); error != 0) return error;
    if (open != nullptr) return outcome(::futimens(fd_of(open), times));
    return outcome(::utimensat(behind, relative(path), times, AT_SYMLINK_NOFOLLOW));
}

int chmod(const char* path, mode_t mode, fuse_file_info* open) {
    if (const int error = arrive(call::chmod); error != 0) return error;
    if (open != nullptr) return outcome(::fchmod(fd_of(open), mode));
    return outcome(::fchmodat(behind, relative(path), mode, 0));
}

int link(const char* from, const char* to) {
    if (const int error = arrive(call::link); error != 0) return error;
    if (names_by != stalling::naming::links) return -EPERM;
    return outcome(::linkat(behind, relative(from), behind, relative(to), 0));
}

int rename(const char* from, const char* to, unsigned flags) {
    if (const int error = arrive(call::rename); error != 0) return error;
    if ((flags & no_replace) != 0 && names_by == stalling::naming::neither) return -EINVAL;
    return outcome(::syscall(SYS_renameat2, behind, relative(from), behind, relative(to), flags));
}

int unlink(const char* path) {
    if (const int error = arrive(call::unlink); error != 0) return error;
    return outcome(::unlinkat(behind, relative(path), 0));
}

int statfs(const char*, struct statvfs* into) {
    if (const int error = arrive(call::statfs); error != 0) return error;
    return outcome(::fstatvfs(behind, into));
}

fuse_operations operations() {
    fuse_operations all{};
    all.init = init;
    all.getattr = getattr;
    all.readdir = readdir;
    all.open = open;
    all.create = create;
    all.read = read;
    all.write = write;
    all.flush = flush;
    all.fsync = fsync;
    all.release = release;
    all.utimens = utimens;
    all.chmod = chmod;
    all.link = link;
    all.rename = rename;
    all.unlink = unlink;
    all.statfs = statfs;
    return all;
}

/// Serves the calls on threads of their own, since each that hangs takes one.
int serve(char* program, const char* mountpoint) {
    constexpr unsigned most_threads = 64;
    char with[] = "-ofsname=stalling_fs";
    char* arguments[] = {program, with, nullptr};
    fuse_args args = FUSE_ARGS_INIT(2, arguments);
    const auto all = operations();
    fuse* const served = fuse_new(&args, &all, sizeof all, nullptr);
    if (served == nullptr || fuse_mount(served, mountpoint) != 0) return 1;
    fuse_loop_config* const loop = fuse_loop_cfg_create();
    fuse_loop_cfg_set_max_threads(loop, most_threads);
    return fuse_loop_mt(served, loop);
}

/// A process that unmounts when this one has ended, however that was. It has a session of its own, so that who
/// kills the group of the test does not reach it.
void unmount_at_the_end(const char* mountpoint) {
    int life[2];
    if (::pipe2(life, O_CLOEXEC) != 0) std::exit(2);
    const pid_t pid = ::fork();
    if (pid < 0) std::exit(2);
    if (pid != 0) {
        (void)::close(life[0]);
        return;  // the other end stays open for as long as we live
    }
    (void)::close(life[1]);
    (void)::setsid();
    char nothing = 0;
    while (::read(life[0], &nothing, 1) < 0 && errno == EINTR) {
    }
    if (::umount2(mountpoint, MNT_DETACH) != 0 && errno == EPERM)
        (void)::execlp("fusermount3", "fusermount3", "-u", "-z", "-q", mountpoint, nullptr);
    ::_exit(0);
}

}  // namespace

int main(int count, char** words) {
    if (count != 5) return 2;
    void* const page =
        ::mmap(nullptr, sizeof(stalling::control), PROT_READ | PROT_WRITE, MAP_SHARED, std::atoi(words[1]), 0);
    if (page == MAP_FAILED) return 2;
    shared = static_cast<stalling::control*>(page);
    names_by = static_cast<stalling::naming>(std::atoi(words[2]));
    behind = ::open(words[3], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (behind < 0) return 2;
    (void)::umask(0);  // the kernel has applied that of the caller
    unmount_at_the_end(words[4]);
    return serve(words[0], words[4]);
}
