// Processes, the pages that they share, and what one of them costs.
#pragma once

#include <malloc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <csignal>
#include <ctime>
#include <fstream>

#include "measure.hpp"

namespace bench {

/// Zeroed, and shared with all processes that are forked from now on. Stays until the program ends.
template <class T>
[[nodiscard]] T& shared_page() {
    void* const memory = ::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) fail("mmap");
    return *new (memory) T{};
}

/// A forked process that runs `body` and ends. It dies with its parent, and with this object.
class child {
 public:
    template <class Body>
    explicit child(Body body) {
        (void)std::fflush(nullptr);
        const pid_t parent = ::getpid();
        pid_ = ::fork();
        if (pid_ < 0) fail("fork");
        if (pid_ != 0) return;
        (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != parent) ::_exit(1);  // it died before that was said
        (void)::prctl(PR_SET_TIMERSLACK, 1UL);  // short naps are to be short
        ::_exit(status_of(body));
    }
    child(const child&) = delete;
    child& operator=(const child&) = delete;
    ~child() {
        kill();
        reap();
    }

    [[nodiscard]] pid_t pid() const noexcept { return pid_; }
    void kill() const noexcept {
        if (!reaped_) (void)::kill(pid_, SIGKILL);
    }
    /// Waits for its end.
    void reap() noexcept { (void)reap(0); }
    /// Whether it has ended, and was reaped.
    [[nodiscard]] bool ended() noexcept { return reap(WNOHANG); }
    /// Whether it ended by itself, and not well. REQUIRES: it was reaped.
    [[nodiscard]] bool failed() const noexcept { return WIFEXITED(status_) && WEXITSTATUS(status_) != 0; }
    /// Whether it sleeps in a call of the system.
    [[nodiscard]] bool asleep() const { return is_asleep(pid_); }

    [[nodiscard]] static bool is_asleep(pid_t pid) {
        std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
        std::string line;
        std::getline(stat, line);
        const auto at = line.rfind(')');
        return at != std::string::npos && line.compare(at, 4, ") S ") == 0;
    }

 private:
    template <class Body>
    static int status_of(Body& body) noexcept {
        try {
            body();
            return 0;
        } catch (const std::exception& e) {
            (void)std::fprintf(stderr, "process %d: %s\n", static_cast<int>(::getpid()), e.what());
            return 1;
        }
    }

    bool reap(int flags) noexcept {
        pid_t reaped = 0;
        while (!reaped_ && (reaped = ::waitpid(pid_, &status_, flags)) < 0 && errno == EINTR) {
        }
        reaped_ = reaped_ || reaped != 0;
        return reaped_;
    }

    pid_t pid_ = -1;
    int status_ = 0;
    bool reaped_ = false;
};

/// Throws if a child of this process has failed; what was measured then means nothing. Killed is not failed.
inline void expect_no_failed_child() {
    siginfo_t ended{};
    if (::waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) != 0) return;  // there is none
    if (ended.si_pid != 0 && ended.si_code == CLD_EXITED && ended.si_status != 0)
        throw std::runtime_error("a process of the benchmark failed");
}

// ---- what a process costs --------------------------------------------------------------------------------

/// Bytes that this process has from its allocator.
[[nodiscard]] inline double heap_in_use() {
    const auto m = ::mallinfo2();
    return static_cast<double>(m.uordblks + m.hblkhd);
}

/// Bytes of memory that `process` has and that are no file's. Counted page by page: the sums that are kept
/// anyway are off by hundreds of KiB.
[[nodiscard]] inline double anonymous_bytes(pid_t process) {
    std::ifstream rollup("/proc/" + std::to_string(process) + "/smaps_rollup");
    for (std::string word; rollup >> word;) {
        double kib = 0;
        if (word == "Anonymous:" && rollup >> kib) return kib * 1024;
    }
    fail("the memory of process " + std::to_string(process));
}

[[nodiscard]] inline double cpu_us(pid_t process) {
    clockid_t clock{};
    timespec t{};
    if (::clock_getcpuclockid(process, &clock) != 0 || ::clock_gettime(clock, &t) != 0) fail("its CPU time");
    return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) / 1e3;
}

/// The share of one core that `process` uses.
[[nodiscard]] inline double cpu_share(pid_t process, std::chrono::milliseconds window) {
    const auto begin = now_ns();
    const double cpu = cpu_us(process);
    sleep_for(window);
    return (cpu_us(process) - cpu) / microseconds_between(begin, now_ns());
}

/// Raises the limit of descriptors. A lock that is held has one, and a process that has more than half of what
/// it may keeps no witness; a lock that is waited for may have two. Returns how many locks fit.
[[nodiscard]] inline int raise_limit(table& results, int wanted) {
    constexpr rlim_t reserve = 1024;
    const rlim_t needed = 2 * static_cast<rlim_t>(wanted) + reserve;
    rlimit limit{};
    (void)::getrlimit(RLIMIT_NOFILE, &limit);
    const auto was = limit;
    limit.rlim_cur = std::max(limit.rlim_cur, std::min(needed, limit.rlim_max));
    if (limit.rlim_cur < needed) {
        const rlimit higher{needed, std::max(needed, limit.rlim_max)};
        if (::setrlimit(RLIMIT_NOFILE, &higher) == 0) limit = higher;
    }
    (void)::setrlimit(RLIMIT_NOFILE, &limit);
    const auto fits =
        static_cast<int>(std::min<rlim_t>(static_cast<rlim_t>(wanted), (limit.rlim_cur - reserve) / 2));
    results.note(text("RLIMIT_NOFILE: soft %llu, hard %llu; raised to %llu, which is for %d locks",
                      static_cast<unsigned long long>(was.rlim_cur),
                      static_cast<unsigned long long>(was.rlim_max),
                      static_cast<unsigned long long>(limit.rlim_cur), fits));
    return fits;
}

/// For coroutines that are spawned: what one throws ends the process.
inline void rethrow(const std::exception_ptr& error) {
    if (error) std::rethrow_exception(error);
}

}  // namespace bench
