#include "child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>
#include <thread>

namespace support {
namespace {

constexpr int patience_ms = 60'000;

bool readable_within(int fd, int milliseconds) {
    pollfd p{fd, POLLIN, 0};
    for (;;) {
        const int n = ::poll(&p, 1, milliseconds);
        if (n >= 0 || errno != EINTR) return n > 0;
    }
}

ssize_t read_byte(int fd, char& c) {
    for (;;) {
        const auto n = ::read(fd, &c, 1);
        if (n >= 0 || errno != EINTR) return n;
    }
}

boost::test_tools::assertion_result without_address_sanitizer(const char* because) {
#if defined(__SANITIZE_ADDRESS__)
    boost::test_tools::assertion_result r(false);
    r.message() << "this is AddressSanitizer: " << because;
    return r;
#else
    (void)because;
    return true;
#endif
}

}  // namespace

void child::pipe_to_parent::say(char c) const {
    if (::write(out_, &c, 1) != 1) ::_exit(97);
}

char child::pipe_to_parent::hear() const {
    char c = 0;
    if (read_byte(in_, c) != 1) ::_exit(98);
    return c;
}

void die_with_parent() { (void)::prctl(PR_SET_PDEATHSIG, SIGKILL); }

child::child(const std::function<void(pipe_to_parent&)>& body) {
    int up[2];
    int down[2];
    if (::pipe2(up, O_CLOEXEC) != 0 || ::pipe2(down, O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
    pid_ = ::fork();
    if (pid_ < 0) throw std::runtime_error("fork");
    if (pid_ == 0) {
        die_with_parent();
        (void)::close(up[0]);
        (void)::close(down[1]);
        pipe_to_parent parent(down[0], up[1]);
        try {
            body(parent);
        } catch (...) {
            ::_exit(99);
        }
        ::_exit(0);
    }
    (void)::close(up[1]);
    (void)::close(down[0]);
    from_child_ = up[0];
    to_child_ = down[1];
}

child::~child() {
    kill_and_reap();
    (void)::close(from_child_);
    (void)::close(to_child_);
}

char child::hear() {
    char c = 0;
    if (!readable_within(from_child_, patience_ms)) throw std::runtime_error("the child says nothing");
    if (read_byte(from_child_, c) != 1) throw std::runtime_error("the child ended without a word");
    return c;
}

bool child::speaks_within(int milliseconds) { return readable_within(from_child_, milliseconds); }

void child::say(char c) {
    if (::write(to_child_, &c, 1) != 1) throw std::runtime_error("the child does not listen");
}

int child::wait() {
    int status = 0;
    for (int waited = 0; waited < patience_ms; waited += 5) {
        const pid_t n = ::waitpid(pid_, &status, WNOHANG);
        if (n == pid_) {
            reaped_ = true;
            return status;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    throw std::runtime_error("the child does not end");
}

void child::kill_and_reap() {
    if (reaped_) return;
    (void)::kill(pid_, SIGKILL);
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
    reaped_ = true;
}

boost::test_tools::assertion_result forks_of_threads(boost::unit_test::test_unit_id) {
    return without_address_sanitizer("its allocator does not survive the fork of a process with threads");
}

boost::test_tools::assertion_result no_leak_checker(boost::unit_test::test_unit_id) {
    return without_address_sanitizer("its leak checker does not see what the threads of a parent own");
}

int run_program(const std::vector<std::string>& command) {
    std::vector<char*> words;
    for (const auto& w : command) words.push_back(const_cast<char*>(w.c_str()));
    words.push_back(nullptr);
    const pid_t pid = ::fork();
    if (pid < 0) throw std::runtime_error("fork");
    if (pid == 0) {
        (void)::execvp(words[0], words.data());
        ::_exit(127);
    }
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
}

}  // namespace support
