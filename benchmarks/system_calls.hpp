// Counts the system calls of processes, by ptrace(2): that needs no package and no privilege.
#pragma once

#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "measure.hpp"

namespace bench {

struct calls {
    std::uint64_t all = 0;
    std::uint64_t opens = 0;   ///< openat: a look at a lock opens its record
    std::uint64_t writes = 0;  ///< pwrite64: of a record, in a heartbeat or before an attempt to claim
    std::uint64_t sleeps = 0;  ///< epoll_wait: one turn of the event loop
};

/// Watches all threads of some processes. While it lives, every call of theirs is stopped twice: time means
/// nothing then.
class call_counter {
 public:
    explicit call_counter(const std::vector<pid_t>& processes) {
        try {
            for (const auto p : processes)
                for (const auto& task :
                     std::filesystem::directory_iterator("/proc/" + std::to_string(p) + "/task"))
                    seize(p, std::stoi(task.path().filename()));
            // Seizing interrupts what a thread waits in: it has to call that anew.
            (void)count_for(std::chrono::milliseconds(200));
        } catch (...) {
            detach();
            throw;
        }
    }
    call_counter(const call_counter&) = delete;
    call_counter& operator=(const call_counter&) = delete;
    ~call_counter() { detach(); }

    /// Lets them run, and counts the calls that they start meanwhile.
    [[nodiscard]] calls count_for(std::chrono::milliseconds time) {
        counted_ = {};
        const auto end = std::chrono::steady_clock::now() + time;
        while (std::chrono::steady_clock::now() < end)
            if (!handle_stops()) sleep_for(std::chrono::microseconds(200));
        return std::exchange(counted_, {});
    }

 private:
    void detach() {
        for (const pid_t thread : threads_) {
            (void)::ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr);
            int status = 0;
            if (::waitpid(thread, &status, __WALL) == thread && WIFSTOPPED(status))
                (void)::ptrace(PTRACE_DETACH, thread, nullptr, nullptr);
        }
    }

    void seize(pid_t process, pid_t thread) {
        constexpr long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE;
        if (::ptrace(PTRACE_SEIZE, thread, nullptr, options) != 0) {
            // A thread that one of the others has just started is ours already, and says so by its first stop.
            const bool known = thread != process && (errno == EPERM || errno == ESRCH);
            if (!known) fail("ptrace");
            return;
        }
        (void)::ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr);
        threads_.insert(thread);
    }

    bool handle_stops() {
        bool any = false;
        for (auto at = threads_.begin(); at != threads_.end();) {
            int status = 0;
            const pid_t stopped = ::waitpid(*at, &status, __WALL | WNOHANG);
            const bool gone = stopped < 0 || (stopped > 0 && !WIFSTOPPED(status));
            if (stopped > 0 && !gone) {
                any = true;
                handle(*at, status);
            }
            at = gone ? threads_.erase(at) : std::next(at);
        }
        return any;
    }

    void handle(pid_t thread, int status) {
        constexpr int at_a_call = SIGTRAP | 0x80;  // PTRACE_O_TRACESYSGOOD
        const int event = status >> 16;
        int signal = 0;
        if (WSTOPSIG(status) == at_a_call) {
            note_call(thread);
        } else if (event == PTRACE_EVENT_CLONE) {
            unsigned long started = 0;
            (void)::ptrace(PTRACE_GETEVENTMSG, thread, nullptr, &started);
            threads_.insert(static_cast<pid_t>(started));
        } else if (event == 0) {
            signal = WSTOPSIG(status);
        }
        (void)::ptrace(PTRACE_SYSCALL, thread, nullptr, signal);
    }

    void note_call(pid_t thread) {
        __ptrace_syscall_info info{};
        if (::ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof info, &info) <= 0) fail("ptrace");
        if (info.op != PTRACE_SYSCALL_INFO_ENTRY) return;
        ++counted_.all;
        if (info.entry.nr == SYS_openat) ++counted_.opens;
        if (info.entry.nr == SYS_pwrite64) ++counted_.writes;
        if (info.entry.nr == SYS_epoll_wait) ++counted_.sleeps;
    }

    std::set<pid_t> threads_;
    calls counted_;
};

}  // namespace bench
