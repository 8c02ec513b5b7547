#include "crew.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <tuple>
#include <utility>

extern char** environ;

namespace demo {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds look_after_workers_every{100};

void must(int error, const char* what) {
    if (error != 0) throw std::system_error(error, std::system_category(), what);
}

std::pair<descriptor, descriptor> make_pipe() {
    int ends[2];
    must(::pipe2(ends, O_CLOEXEC) == 0 ? 0 : errno, "pipe2");
    return {descriptor(ends[0]), descriptor(ends[1])};
}

pid_t wait_for(pid_t pid, int& status, int flags) {
    for (;;) {
        const auto got = ::waitpid(pid, &status, flags);
        if (got >= 0 || errno != EINTR) return got;
    }
}

}  // namespace

void descriptor::close() noexcept {
    if (fd_ >= 0) (void)::close(std::exchange(fd_, -1));
}

crew::crew(std::string program, std::filesystem::path directory)
    : program_(std::move(program)), directory_(std::move(directory)) {
    std::tie(news_, news_end_) = make_pipe();
}

crew::~crew() {
    for (auto& [name, p] : workers_) {
        int status = 0;
        (void)::kill(p.pid, SIGKILL);
        (void)wait_for(p.pid, status, 0);
    }
}

pid_t crew::start(char name) {
    auto [input, ours] = make_pipe();
    posix_spawn_file_actions_t actions;
    must(::posix_spawn_file_actions_init(&actions), "posix_spawn");
    (void)::posix_spawn_file_actions_adddup2(&actions, input.get(), STDIN_FILENO);
    (void)::posix_spawn_file_actions_adddup2(&actions, news_end_.get(), STDOUT_FILENO);
    std::string role = "--worker";
    std::string who(1, name);
    std::string where = directory_.string();
    const std::array<char*, 5> arguments{program_.data(), role.data(), who.data(), where.data(), nullptr};
    process p;
    const int error = ::posix_spawnp(&p.pid, program_.c_str(), &actions, nullptr, arguments.data(), environ);
    (void)::posix_spawn_file_actions_destroy(&actions);
    must(error, "cannot start a worker");
    p.input = std::move(ours);
    const auto pid = p.pid;
    workers_.insert_or_assign(name, std::move(p));
    return pid;
}

void crew::signal(char name, int number) {
    must(::kill(workers_.at(name).pid, number) == 0 ? 0 : errno, "kill");
}

void crew::freeze(char name) {
    signal(name, SIGSTOP);
    int status = 0;
    const auto got = wait_for(workers_.at(name).pid, status, WUNTRACED);
    if (got > 0 && WIFSTOPPED(status)) return;
    const auto gone = workers_.extract(name);
    note_exit(name, gone.mapped(), status);
    throw failure(std::string(1, name) + " exited in the middle of its work");
}

void crew::thaw(char name) {
    signal(name, SIGCONT);
}

void crew::kill(char name) {
    workers_.at(name).killed = true;
    signal(name, SIGKILL);
}

void crew::dismiss() {
    for (auto& [name, p] : workers_) p.input.close();
    news_end_.close();  // from here on, the news end with the last worker
}

void crew::note_exit(char name, const process& p, int status) const {
    const bool as_told = WIFSIGNALED(status) ? p.killed && WTERMSIG(status) == SIGKILL
                                             : WEXITSTATUS(status) == 0 && p.input.get() < 0;
    if (as_told) return;
    throw failure(std::string(1, name) + (WIFSIGNALED(status)
                                              ? " died of signal " + std::to_string(WTERMSIG(status))
                                              : " exited with status " + std::to_string(WEXITSTATUS(status))));
}

void crew::reap() {
    for (auto at = workers_.begin(); at != workers_.end();) {
        int status = 0;
        // A worker that closed its end of the news is about to be gone: waiting for it takes a moment.
        if (wait_for(at->second.pid, status, ended_ ? 0 : WNOHANG) <= 0) {
            ++at;
            continue;
        }
        const auto gone = workers_.extract(at++);
        note_exit(gone.key(), gone.mapped(), status);
    }
}

void crew::read_some() {
    std::array<char, 4096> buffer;
    const auto n = ::read(news_.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) return;
    must(n < 0 ? errno : 0, "cannot read the news");
    unread_.append(buffer.data(), static_cast<std::size_t>(n));
    ended_ = n == 0;
}

std::optional<message> crew::take_line() {
    const auto end = unread_.find('\n');
    if (end == std::string::npos) return {};
    auto m = from_line(std::string_view(unread_).substr(0, end));
    if (!m) throw failure("a worker said what nobody understands: " + unread_.substr(0, end));
    unread_.erase(0, end + 1);
    return m;
}

std::optional<message> crew::hear(steady until) {
    for (;;) {
        if (auto m = take_line()) return m;
        if (ended_) return {};
        const auto left = std::chrono::ceil<milliseconds>(until - std::chrono::steady_clock::now());
        pollfd p{news_.get(), POLLIN, 0};
        const auto patience = std::clamp(left, milliseconds::zero(), look_after_workers_every);
        const int ready = ::poll(&p, 1, static_cast<int>(patience.count()));
        if (ready < 0) {
            if (errno == EINTR) return {};  // the caller knows what the signal means
            must(errno, "poll");
        }
        if (ready > 0) read_some();
        if (ready == 0 || ended_) reap();
        if (ready == 0 && left <= milliseconds::zero()) return {};
    }
}

}  // namespace demo
