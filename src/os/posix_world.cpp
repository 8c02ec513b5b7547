#include "posix_world.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <random>

#include "filesystem_class.hpp"
#include "process_state.hpp"
#include "retry.hpp"
#include "system.hpp"

namespace fslock::os {
namespace {

file_kind kind_of(mode_t mode) {
    if (S_ISREG(mode)) return file_kind::regular;
    if (S_ISDIR(mode)) return file_kind::directory;
    return S_ISLNK(mode) ? file_kind::symlink : file_kind::other;
}

std::int64_t nanoseconds(const timespec& t) { return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec; }

file_facts facts_from(const struct stat& s) {
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

lock_state flock_state(int n) {
    if (n == 0) return lock_state::free;
    return errno == EWOULDBLOCK ? lock_state::held : lock_state::unknown;
}

/// Asks by taking a shared lock and giving it back at once: a shared one disturbs no other question.
lock_state probe_flock(int fd) {
    const auto state = flock_state(retry([&] { return ::flock(fd, LOCK_SH | LOCK_NB); }));
    if (state == lock_state::free) (void)::flock(fd, LOCK_UN);
    return state;
}

/// `fd` was just opened with `mode`; the umask may have taken bits away.
result<new_file> finish_new_file(world& w, int fd, unsigned mode) {
    if (fd < 0) return last_error();
    new_file made;
    made.file = file(w, fd);
    struct stat facts {};
    if (::fstat(fd, &facts) != 0) return last_error();
    if ((facts.st_mode & 07777) != mode && retry([&] { return ::fchmod(fd, static_cast<mode_t>(mode)); }) != 0)
        return last_error();
    made.facts = facts_from(facts);
    return made;
}

result<file_facts> stat_directory(const std::string& path) {
    struct stat s {};
    if (retry([&] { return ::stat(path.c_str(), &s); }) != 0) return last_error();
    if (!S_ISDIR(s.st_mode)) return std::error_code(ENOTDIR, std::system_category());
    return facts_from(s);
}

class posix_world final : public world {
 public:
    call<result<new_file>> create_unnamed(const std::string& directory, unsigned mode) override {
        const int fd = process_.open([&] { return system::open_unnamed(directory.c_str(), mode); });
        return finish_new_file(*this, fd, mode);
    }

    call<result<new_file>> create(const std::string& path, unsigned mode) override {
        constexpr int flags = O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_NOFOLLOW;
        const int fd = process_.open([&] { return retry([&] { return ::open(path.c_str(), flags, mode); }); });
        return finish_new_file(*this, fd, mode);
    }

    call<result<file>> open(const std::string& path, access how) override {
        const int flags = (how == access::read ? O_RDONLY : O_RDWR) | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY;
        const int fd = process_.open([&] { return retry([&] { return ::open(path.c_str(), flags); }); });
        if (fd < 0) return last_error();
        return file(*this, fd);
    }

    call<result<std::size_t>> read(const file& from, std::span<char> into) override {
        std::size_t got = 0;
        while (got < into.size()) {
            const auto n = retry([&] {
                return ::pread(from.handle(), into.data() + got, into.size() - got, static_cast<off_t>(got));
            });
            if (n < 0) return last_error();
            if (n == 0) break;
            got += static_cast<std::size_t>(n);
        }
        return got;
    }

    call<std::error_code> write(const file& to, std::string_view data) override {
        const auto n = retry([&] { return ::pwrite(to.handle(), data.data(), data.size(), 0); });
        if (n < 0) return last_error();
        const bool whole = static_cast<std::size_t>(n) == data.size();
        return whole ? std::error_code() : std::error_code(ENOSPC, std::system_category());
    }

    call<result<file_facts>> facts(const file& of) override {
        struct stat s {};
        if (::fstat(of.handle(), &s) != 0) return last_error();
        return facts_from(s);
    }

    call<result<file_facts>> facts_at(const std::string& path) override {
        struct stat s {};
        if (retry([&] { return ::lstat(path.c_str(), &s); }) != 0) return last_error();
        return facts_from(s);
    }

    call<result<std::int64_t>> touch(const file& of) override {
        if (retry([&] { return ::futimens(of.handle(), nullptr); }) != 0) return last_error();
        struct stat s {};
        if (::fstat(of.handle(), &s) != 0) return last_error();
        return facts_from(s).modified_ns;
    }

    call<std::error_code> sync(const file& of) override {
        return outcome(retry([&] { return ::fsync(of.handle()); }));
    }

    call<std::error_code> sync_directory(const std::string& directory) override {
        const int fd = retry([&] { return ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
        if (fd < 0) return last_error();
        auto error = outcome(retry([&] { return ::fsync(fd); }));
        (void)::close(fd);
        // A filesystem that cannot sync a directory says EINVAL (fsync(2)); it keeps no order that we could ask for.
        if (error == std::errc::invalid_argument) error = {};
        return error;
    }

    call<std::error_code> link(const file& of, const std::string& from, const std::string& to) override {
        if (from.empty()) return system::link_unnamed(of.handle(), to.c_str());
        return outcome(retry([&] { return ::link(from.c_str(), to.c_str()); }));
    }

    call<std::error_code> rename_exclusive(const std::string& from, const std::string& to) override {
        return system::rename_exclusive(from.c_str(), to.c_str());
    }

    call<std::error_code> rename(const std::string& from, const std::string& to) override {
        return outcome(retry([&] { return ::rename(from.c_str(), to.c_str()); }));
    }

    call<std::error_code> unlink(const std::string& path) override {
        return outcome(retry([&] { return ::unlink(path.c_str()); }));
    }

    call<result<file_facts>> directory(const std::string& path) override { return stat_directory(path); }

    call<result<directory_facts>> classify(const std::string& path) override {
        const auto found = stat_directory(path);
        if (!found) return found.error();
        const auto kind = filesystem_class(path.c_str());
        if (!kind) return kind.error();
        directory_facts facts;
        facts.file = *found;
        facts.kind = *kind;
        return facts;
    }

    witness_kind system_witness() override { return system::strongest_witness(); }

    /// A kept descriptor counts against RLIMIT_NOFILE; half of that belongs to the program. The limit is asked only
    /// once there are many, since asking is a system call.
    witness_kind new_witness() override {
        constexpr std::size_t few = 64;
        const auto open = process_.open_descriptors();
        if (open > few) {
            rlimit limit{};
            if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && open > limit.rlim_cur / 2) return witness_kind::none;
        }
        return system_witness();
    }

    call<lock_state> lock(const file& on, lock_byte which, witness_kind how) override {
        if (how == witness_kind::ofd) return system::lock_byte_of(on.handle(), which);
        return flock_state(retry([&] { return ::flock(on.handle(), LOCK_EX | LOCK_NB); }));
    }

    call<std::error_code> unlock(const file& on, lock_byte which, witness_kind how) override {
        if (how == witness_kind::ofd) return system::unlock_byte_of(on.handle(), which);
        return outcome(retry([&] { return ::flock(on.handle(), LOCK_UN); }));
    }

    call<lock_state> probe(const file& on, lock_byte which, witness_kind how) override {
        if (how == witness_kind::ofd) return system::probe_byte_of(on.handle(), which);
        return probe_flock(on.handle());
    }

    const identity& self() override { return process_.self(); }

    call<process_facts> process(int pid) override { return system::look_up(pid); }

    steady now() override { return std::chrono::steady_clock::now(); }

    std::int64_t wall_ns() override {
        timespec t{};
        (void)::clock_gettime(CLOCK_REALTIME, &t);
        return nanoseconds(t);
    }

    std::int64_t next_stamp(std::int64_t floor) override {
        auto last = last_stamp_.load();
        for (;;) {
            const auto next = std::max({wall_ns(), last + 1, floor + 1});
            if (last_stamp_.compare_exchange_weak(last, next)) return next;
        }
    }

    std::uint32_t random() override {
        static thread_local std::minstd_rand source(std::random_device{}());
        return static_cast<std::uint32_t>(source());
    }

    void remember_epoch(const std::string& epoch) override { process_.remember_epoch(epoch); }
    void forget_epoch(const std::string& epoch) override { process_.forget_epoch(epoch); }
    bool knows_epoch(const std::string& epoch) override { return process_.knows_epoch(epoch); }

    void close(int handle) noexcept override { process_.close(handle); }

 private:
    process_state& process_ = process_state::instance();
    std::atomic<std::int64_t> last_stamp_{0};
};

}  // namespace

world& this_world() {
    static auto* const w = new posix_world;  // never destroyed, like the state it uses
    return *w;
}

unsigned fork_generation() noexcept { return process_state::instance().generation(); }

}  // namespace fslock::os
