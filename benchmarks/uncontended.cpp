// What a lock costs beside the bare system calls it is made of, in one run, round by round in turns.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include <asio/awaitable.hpp>
#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>

#include "fslock/fslock.hpp"

namespace {

namespace asio = fslock::asio;

constexpr int rounds = 120;
constexpr int cycles = 200;  // of one round

/// The six calls that a lock cannot do without: open, lock, write, link, unlink, close.
void bare_cycle(const std::string& directory, const std::string& path, const std::string& record) {
    const int fd = ::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    struct flock range {};
    range.l_type = F_WRLCK;
    range.l_len = 1;
    char from[32];
    std::snprintf(from, sizeof from, "/proc/self/fd/%d", fd);
    const bool done = fd >= 0 && ::fcntl(fd, F_OFD_SETLK, &range) == 0 &&
                      ::write(fd, record.data(), record.size()) == static_cast<ssize_t>(record.size()) &&
                      ::linkat(AT_FDCWD, from, AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0 &&
                      ::unlink(path.c_str()) == 0 && ::close(fd) == 0;
    if (!done) throw std::runtime_error("the bare calls fail in " + directory);
}

asio::awaitable<void> coroutine_cycles(const std::filesystem::path& path) {
    for (int i = 0; i < cycles; ++i) {
        const auto lock = co_await fslock::async_acquire(path);
        if (!lock) throw std::runtime_error("no lock");
    }
}

struct contestant {
    const char* name;
    void (*run)(const std::filesystem::path& path);
    std::vector<double> microseconds = {};
    std::vector<double> ratios = {};
};

double median(std::vector<double> v) {
    std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
    return v[v.size() / 2];
}

double timed(const contestant& c, const std::filesystem::path& path) {
    const auto begin = std::chrono::steady_clock::now();
    c.run(path);
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count() / cycles;
}

asio::io_context& loop() {
    static asio::io_context io(1);
    return io;
}

std::vector<contestant> contestants() {
    return {
        {"the six bare calls",
         [](const std::filesystem::path& p) {
             const std::string directory = p.parent_path();
             const std::string record(250, 'x');
             for (int i = 0; i < cycles; ++i) bare_cycle(directory, p.native(), record);
         }},
        {"co_await async_acquire, release",
         [](const std::filesystem::path& p) {
             asio::co_spawn(loop(), coroutine_cycles(p), [](const std::exception_ptr& e) {
                 if (e) std::rethrow_exception(e);
             });
             loop().restart();
             loop().run();
         }},
        {"acquire, release (blocking)",
         [](const std::filesystem::path& p) {
             for (int i = 0; i < cycles; ++i) (void)static_cast<bool>(fslock::acquire(p));
         }},
    };
}

}  // namespace

int main(int argc, char** argv) {
    std::string directory = (std::filesystem::path(argc > 1 ? argv[1] : "/tmp") / "fslock-bench-XXXXXX").native();
    if (::mkdtemp(directory.data()) == nullptr) {
        std::perror(directory.c_str());
        return 1;
    }
    const auto path = std::filesystem::path(directory) / "lock";
    auto all = contestants();
    for (auto& c : all) c.run(path);  // once for nothing: caches, threads, the first look at the directory
    for (int round = 0; round < rounds; ++round) {
        double bare = 0;
        for (auto& c : all) {
            const double us = timed(c, path);
            if (&c == &all.front()) bare = us;
            c.microseconds.push_back(us);
            c.ratios.push_back(us / bare);
        }
    }
    std::printf("%s, median of %d rounds of %d cycles\n", directory.c_str(), rounds, cycles);
    for (const auto& c : all)
        std::printf("  %-34s %7.2f us   %.2f x\n", c.name, median(c.microseconds), median(c.ratios));
    std::filesystem::remove_all(directory);
    return 0;
}
