#include "child.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#if defined(__linux__)
#include <sys/prctl.h>
#endif

extern char** environ;  // NOLINT: POSIX declares it so

namespace cli {
namespace {

std::error_code last_error() { return {errno, std::system_category()}; }

std::string_view name_of(std::string_view variable) { return variable.substr(0, variable.find('=') + 1); }

/// All made before the fork: between that and `exec` nothing may be allocated.
struct prepared {
    explicit prepared(const child_setup& s) {
        for (const auto& word : s.command) words.push_back(const_cast<char*>(word.c_str()));
        words.push_back(nullptr);
        for (char** v = environ; *v != nullptr; ++v) {
            bool ours = false;
            for (const auto& set : s.variables) ours = ours || std::string_view(*v).starts_with(name_of(set));
            if (!ours) variables.push_back(*v);
        }
        for (const auto& set : s.variables) variables.push_back(const_cast<char*>(set.c_str()));
        variables.push_back(nullptr);
    }
    std::vector<char*> words;
    std::vector<char*> variables;
};

/// Tells the parent by `report`, which `exec` closes, why there was none.
[[noreturn]] void become(const child_setup& s, prepared& p, const sigset_t& mask, pid_t parent, int report) {
    for (const int n : s.signals) (void)::signal(n, SIG_DFL);
#if defined(__linux__)
    if (s.dies_with_us) {
        (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != parent) ::_exit(1);  // it is gone already
    }
#else
    (void)parent;
#endif
    (void)::sigprocmask(SIG_SETMASK, &mask, nullptr);
    environ = p.variables.data();
    (void)::execvp(p.words[0], p.words.data());
    const int why = errno;
    (void)!::write(report, &why, sizeof why);
    ::_exit(1);
}

}  // namespace

std::error_code start_child(const child_setup& setup, pid_t& pid) {
    prepared p(setup);
    int report[2];
    if (::pipe(report) != 0) return last_error();
    for (const int fd : report) (void)::fcntl(fd, F_SETFD, FD_CLOEXEC);
    // Until `exec` the child has our handlers, whose other end is ours as well: no signal may reach them there.
    sigset_t all;
    sigset_t before;
    ::sigfillset(&all);
    (void)::sigprocmask(SIG_SETMASK, &all, &before);
    const pid_t parent = ::getpid();
    pid = ::fork();
    if (pid == 0) become(setup, p, before, parent, report[1]);
    std::error_code error;
    if (pid < 0) error = last_error();
    (void)::sigprocmask(SIG_SETMASK, &before, nullptr);
    (void)::close(report[1]);
    int why = 0;
    ssize_t n = 0;
    do n = pid < 0 ? 0 : ::read(report[0], &why, sizeof why);
    while (n < 0 && errno == EINTR);
    (void)::close(report[0]);
    if (n == static_cast<ssize_t>(sizeof why)) {
        error = {why, std::system_category()};
        while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
        }
    }
    return error;
}

std::optional<int> reap_child(pid_t pid) {
    int status = 0;
    if (::waitpid(pid, &status, WNOHANG) != pid) return {};
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

bool terminal_signals_us() noexcept {
    const int terminal = ::open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);
    if (terminal < 0) return false;
    const bool ours = ::tcgetpgrp(terminal) == ::getpgrp();
    (void)::close(terminal);
    return ours;
}

}  // namespace cli
