#include "posix_world.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <random>

#include "facts.hpp"
#include "filesystem_class.hpp"
#include "process_state.hpp"
#include "retry.hpp"
#include "system.hpp"

namespace fslock::os {
namespace {

/// A stamp that somebody wrote into a record may be anything: only what a clock could say counts.
std::int64_t honoured(std::int64_t floor) {
    constexpr std::int64_t latest = 8'000'000'000'000'000'000;  // the year 2223
    return floor < latest ? floor : 0;
}

/// Less than any two hand-overs are apart: epochs that are ahead of the clock must not run away from it.
constexpr std::uint32_t chance_ns = 1U << 14;

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

result<file_facts> stat_directory(const std::string& path) {
    struct stat s {};
    if (retry([&] { return ::stat(path.c_str(), &s); }) != 0) return last_error();
    if (!S_ISDIR(s.st_mode)) return std::error_code(ENOTDIR, std::system_category());
    return facts_from(s);
}

class posix_world final : public world {
 public:
    call<result<new_file>> create_unnamed(const std::string& directory, unsigned mode, fs_class on) override {
        return finish_new_file(open_file(on, [&] { return system::open_unnamed(directory.c_str(), mode); }), mode);
    }

    call<result<new_file>> create(const std::string& path, unsigned mode, fs_class on) override {
        constexpr int flags = O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_NOFOLLOW;
        return finish_new_file(open_file(on, [&] { return ::open(path.c_str(), flags, mode); }), mode);
    }

    call<result<file>> open(const std::string& path, access how, fs_class on) override {
        const int flags = (how == access::read ? O_RDONLY : O_RDWR) | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY;
        return open_file(on, [&] { return ::open(path.c_str(), flags); });
    }

    call<result<std::size_t>> read(const file& from, std::span<char> into) override {
        std::size_t got = 0;
        while (got < into.size()) {
            const auto n = retry([&] {
                return ::pread(fd_of(from), into.data() + got, into.size() - got, static_cast<off_t>(got));
            });
            if (n < 0) return last_error();
            if (n == 0) break;
            got += static_cast<std::size_t>(n);
        }
        return got;
    }

    call<std::error_code> write(const file& to, std::string_view data) override {
        const auto n = retry([&] { return ::pwrite(fd_of(to), data.data(), data.size(), 0); });
        if (n < 0) return last_error();
        const bool whole = static_cast<std::size_t>(n) == data.size();
        return whole ? std::error_code() : std::error_code(ENOSPC, std::system_category());
    }

    call<result<file_facts>> facts(const file& of) override {
        struct stat s {};
        if (::fstat(fd_of(of), &s) != 0) return last_error();
        return facts_from(s);
    }

    call<result<file_facts>> facts_at(const std::string& path) override {
        struct stat s {};
        if (retry([&] { return ::lstat(path.c_str(), &s); }) != 0) return last_error();
        return facts_from(s);
    }

    call<result<std::int64_t>> touch(const file& of) override {
        if (retry([&] { return ::futimens(fd_of(of), nullptr); }) != 0) return last_error();
        struct stat s {};
        if (::fstat(fd_of(of), &s) != 0) return last_error();
        return facts_from(s).modified_ns;
    }

    call<std::error_code> sync(const file& of) override {
        return outcome(retry([&] { return ::fsync(fd_of(of)); }));
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
        if (from.empty()) return system::link_unnamed(fd_of(of), to.c_str());
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

    call<bool> has_name(const std::string& directory, const std::string& prefix, const file_facts& of) override {
        std::error_code error;
        for (std::filesystem::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
            if (!at->path().filename().native().starts_with(prefix)) continue;
            struct stat s {};
            if (::lstat(at->path().c_str(), &s) == 0 && facts_from(s).same_inode(of)) return true;
        }
        return false;
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
    witness_kind new_witness() override { return fewer_than_one_in(2) ? system_witness() : witness_kind::none; }

    bool may_keep_waiting_files() override { return fewer_than_one_in(8); }

    call<lock_state> lock(const file& on, lock_byte which, witness_kind how) override {
        if (how == witness_kind::ofd) return system::lock_byte_of(fd_of(on), which);
        return flock_state(retry([&] { return ::flock(fd_of(on), LOCK_EX | LOCK_NB); }));
    }

    call<std::error_code> unlock(const file& on, lock_byte which, witness_kind how) override {
        if (how == witness_kind::ofd) return system::unlock_byte_of(fd_of(on), which);
        return outcome(retry([&] { return ::flock(fd_of(on), LOCK_UN); }));
    }

    call<lock_state> probe(const file& on, lock_byte which, witness_kind how) override {
        if (how == witness_kind::ofd) return system::probe_byte_of(fd_of(on), which);
        return probe_flock(fd_of(on));
    }

    void show_waiting(const file& on) override { system::show_waiting(fd_of(on)); }
    bool is_waited_for(const file& of) override { return system::is_waited_for(fd_of(of)); }

    const identity& self() override { return process_.self(); }

    call<process_facts> process(int pid) override { return system::look_up(pid); }

    steady now() override { return std::chrono::steady_clock::now(); }

    /// CLOCK_BOOTTIME counts what CLOCK_MONOTONIC, the steady clock, does not (clock_gettime(2)).
    steady::duration suspended() override {
#if defined(CLOCK_BOOTTIME)
        timespec boot{};
        if (::clock_gettime(CLOCK_BOOTTIME, &boot) != 0) return {};
        return std::chrono::nanoseconds(nanoseconds(boot)) - now().time_since_epoch();
#else
        return {};
#endif
    }

    std::int64_t wall_ns() override {
        timespec t{};
        (void)::clock_gettime(CLOCK_REALTIME, &t);
        return nanoseconds(t);
    }

    std::int64_t next_stamp(std::int64_t floor) override {
        auto last = last_stamp_.load();
        for (;;) {
            auto next = std::max(wall_ns(), last + 1);
            if (next <= honoured(floor)) next = honoured(floor) + 1 + random() % chance_ns;
            if (last_stamp_.compare_exchange_weak(last, next)) return next;
        }
    }

    std::uint32_t random() override {
        static thread_local std::minstd_rand source(std::random_device{}());
        return static_cast<std::uint32_t>(source());
    }

    void remember_epoch(std::int64_t stamp) override { process_.remember_epoch(stamp); }
    void forget_epoch(std::int64_t stamp) override { process_.forget_epoch(stamp); }
    bool knows_epoch(std::int64_t stamp) override { return process_.knows_epoch(stamp); }

    void close(int handle, unsigned generation) noexcept override { process_.close(handle, generation); }

 private:
    /// Whether less than that share of the descriptors that this process may have is in use here.
    bool fewer_than_one_in(std::size_t share) {
        constexpr std::size_t few = 64;
        const auto open = process_.open_descriptors();
        if (open <= few) return true;
        rlimit limit{};
        return ::getrlimit(RLIMIT_NOFILE, &limit) != 0 || open <= limit.rlim_cur / share;
    }

    /// A file on a shared filesystem is never locked, and opening it may hang: outside of the critical section.
    template <class Open>
    result<file> open_file(fs_class on, Open f) {
        const auto generation = process_.generation();
        const auto opening = [&] { return retry(f); };
        const int fd = on == fs_class::local ? process_.open(opening) : opening();
        if (fd < 0) return last_error();
        return file(*this, fd, generation);
    }

    /// The umask may have taken bits away. Where the mode cannot be set, the filesystem has no modes.
    static result<new_file> finish_new_file(result<file> opened, unsigned mode) {
        if (!opened) return opened.error();
        new_file made;
        made.file = std::move(*opened);
        struct stat facts {};
        if (::fstat(made.file.handle(), &facts) != 0) return last_error();
        if ((facts.st_mode & 07777) != mode)
            (void)retry([&] { return ::fchmod(made.file.handle(), static_cast<mode_t>(mode)); });
        made.facts = facts_from(facts);
        return made;
    }

    /// Of a file that was inherited through a fork nothing is left but its number: EBADF.
    [[nodiscard]] int fd_of(const file& f) const noexcept {
        return f.generation() == process_.generation() ? f.handle() : -1;
    }

    process_state& process_ = process_state::instance();
    std::atomic<std::int64_t> last_stamp_{0};
};

}  // namespace

world& this_world() {
    static auto* const w = new posix_world;  // never destroyed, like the state it uses
    return *w;
}

/// Made before there are threads: a fork while another one made it would leave it half made in the child, for ever.
[[maybe_unused]] static const world& made_early = this_world();

unsigned fork_generation() noexcept { return process_state::instance().generation(); }

}  // namespace fslock::os
