#include "scripted_peer.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "measure.hpp"

namespace bench {
namespace {

/// A running interpreter. It dies with the process that started it.
class interpreter : public blocking_peer {
 public:
    interpreter(const std::string& program, const std::string& script,
                const std::vector<std::filesystem::path>& paths)
        : paths_(paths) {
        int in[2];
        int out[2];
        if (::pipe2(in, O_CLOEXEC) != 0 || ::pipe2(out, O_CLOEXEC) != 0) fail("pipe");
        pid_ = ::fork();
        if (pid_ < 0) fail("fork");
        if (pid_ == 0) {
            (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
            (void)::dup2(in[0], 0);
            (void)::dup2(out[1], 1);
            (void)::execlp(program.c_str(), program.c_str(), script.c_str(), nullptr);
            ::_exit(127);
        }
        (void)::close(in[0]);
        (void)::close(out[1]);
        to_ = in[1];
        from_ = out[0];
        ask('+',
            (paths_.front().native() + ".own." + std::to_string(pid_)));  // it has loaded everything by then
        ask('-', (paths_.front().native() + ".own." + std::to_string(pid_)));
    }
    interpreter(const interpreter&) = delete;
    interpreter& operator=(const interpreter&) = delete;
    ~interpreter() override {
        (void)::close(to_);
        (void)::close(from_);
        (void)::kill(pid_, SIGKILL);
        (void)::waitpid(pid_, nullptr, 0);
    }

    void take(std::size_t k) override { ask('+', paths_[k].native()); }
    void give(std::size_t k) override { ask('-', paths_[k].native()); }
    [[nodiscard]] pid_t helper() const override { return pid_; }

 private:
    void ask(char what, const std::string& path) const {
        const std::string line = what + path + '\n';
        if (::write(to_, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
            fail("the interpreter");
        char answer[3];
        for (std::size_t got = 0; got < sizeof answer;) {
            const auto n = ::read(from_, answer + got, sizeof answer - got);
            if (n <= 0) throw std::runtime_error("the interpreter ended");
            got += static_cast<std::size_t>(n);
        }
    }

    const std::vector<std::filesystem::path> paths_;
    pid_t pid_ = -1;
    int to_ = -1;
    int from_ = -1;
};

}  // namespace

peer scripted_peer(const std::string& name, const std::string& script,
                   const std::vector<std::string>& interpreters) {
    // Debian keeps modules of Node where only its own Node looks.
    const char* const known = std::getenv("NODE_PATH");
    (void)::setenv("NODE_PATH",
                   ((known != nullptr ? std::string(known) + ':' : "") + "/usr/share/nodejs").c_str(), 1);
    for (const auto& program : interpreters) {
        const auto command = program + " '" + script + "' </dev/null >/dev/null 2>&1";
        if (std::system(command.c_str()) != 0) continue;
        return {name, "", true, [program, script](const std::vector<std::filesystem::path>& paths) {
                    return std::make_unique<interpreter>(program, script, paths);
                }};
    }
    return {name, "not installed for " + interpreters.front()};
}

}  // namespace bench
