// The cycles that are compared: acquire and release, and the bare system calls of the same work.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <asio/awaitable.hpp>
#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/this_coro.hpp>
#include <asio/thread_pool.hpp>
#include <asio/use_awaitable.hpp>

#include "fslock/fslock.hpp"
#include "process.hpp"

namespace bench {

namespace asio = fslock::asio;

/// As long as a record is.
inline const std::string record_text(250, 'x');

/// The six calls that a lock cannot do without: open, lock, write, link, unlink, close.
inline void bare_cycle(const std::string& directory, const std::string& path) {
    const int fd = ::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    struct flock range {};
    range.l_type = F_WRLCK;
    range.l_len = 1;
    char from[32];
    std::snprintf(from, sizeof from, "/proc/self/fd/%d", fd);
    const bool done =
        fd >= 0 && ::fcntl(fd, F_OFD_SETLK, &range) == 0 &&
        ::write(fd, record_text.data(), record_text.size()) == static_cast<ssize_t>(record_text.size()) &&
        ::linkat(AT_FDCWD, from, AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0 &&
        ::unlink(path.c_str()) == 0 && ::close(fd) == 0;
    if (!done) fail("the bare calls in " + directory);
}

/// With `durability::full`: a named file, which is synced before it becomes the record; then its directory.
[[nodiscard]] inline int bare_durable_acquire(const std::string& directory, const std::string& path) {
    const auto temp = path + ".tmp";
    const int fd = ::open(temp.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    struct flock range {};
    range.l_type = F_WRLCK;
    range.l_len = 1;
    bool done =
        fd >= 0 && ::fcntl(fd, F_OFD_SETLK, &range) == 0 &&
        ::write(fd, record_text.data(), record_text.size()) == static_cast<ssize_t>(record_text.size()) &&
        ::fsync(fd) == 0 && ::link(temp.c_str(), path.c_str()) == 0 && ::unlink(temp.c_str()) == 0;
    const int there = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    done = done && there >= 0 && ::fsync(there) == 0 && ::close(there) == 0;
    if (!done) fail("the bare calls in " + directory);
    return fd;
}

inline void bare_release(const std::string& path, int fd) {
    if (::unlink(path.c_str()) != 0 || ::close(fd) != 0) fail("the bare calls for " + path);
}

inline void bare_cycles(const std::filesystem::path& path, int cycles) {
    const std::string directory = path.parent_path();
    for (int i = 0; i < cycles; ++i) bare_cycle(directory, path.native());
}

inline void bare_durable_cycles(const std::filesystem::path& path, int cycles) {
    const std::string directory = path.parent_path();
    for (int i = 0; i < cycles; ++i) bare_release(path.native(), bare_durable_acquire(directory, path.native()));
}

inline asio::io_context& loop() {
    static asio::io_context io(1);
    return io;
}

inline asio::awaitable<void> bare_durable_coroutine(asio::any_io_executor other, std::string path, int cycles) {
    const std::string directory = std::filesystem::path(path).parent_path();
    const auto here = co_await asio::this_coro::executor;
    for (int i = 0; i < cycles; ++i) {
        co_await asio::post(other, asio::use_awaitable);
        const int fd = bare_durable_acquire(directory, path);
        co_await asio::post(here, asio::use_awaitable);
        bare_release(path, fd);
    }
}

/// On another thread, so that the event loop goes on while the disk works.
inline void bare_durable_cycles_elsewhere(const std::filesystem::path& path, int cycles) {
    static asio::thread_pool other(1);
    asio::co_spawn(loop(), bare_durable_coroutine(other.get_executor(), path.native(), cycles), rethrow);
    loop().restart();
    loop().run();
}

inline asio::awaitable<void> coroutine_cycles(const std::filesystem::path& path, fslock::options o,
                                              int cycles) {
    for (int i = 0; i < cycles; ++i) {
        const fslock::lock_guard lock = co_await fslock::async_acquire(path, o);
        if (!lock) throw std::runtime_error("no lock");
    }
}

/// Each acquisition by `co_await`.
inline void await_cycles(const std::filesystem::path& path, const fslock::options& o, int cycles) {
    asio::co_spawn(loop(), coroutine_cycles(path, o, cycles), rethrow);
    loop().restart();
    loop().run();
}

/// Each acquisition from the callback of the one before.
inline void callback_cycles(const std::filesystem::path& path, const fslock::options& o, int cycles) {
    std::function<void()> next = [&] {
        if (cycles-- == 0) return;
        fslock::async_acquire(loop(), path, o, [&](fslock::error_code ec, fslock::lock_guard lock) {
            if (ec) throw fslock::system_error(ec);
            lock.release();
            next();
        });
    };
    next();
    loop().restart();
    loop().run();
}

inline void blocking_cycles(const std::filesystem::path& path, const fslock::options& o, int cycles) {
    for (int i = 0; i < cycles; ++i) (void)static_cast<bool>(fslock::acquire(path, o));
}

[[nodiscard]] inline fslock::options durable() {
    fslock::options o;
    o.durability = fslock::durability::full;
    return o;
}

/// One of those that are compared.
struct contestant {
    const char* name;
    void (*run)(const std::filesystem::path& at, int cycles);
    double budget = 0;                ///< in cycles of the first contestant; 0: none
    std::vector<double> us = {};      ///< of a cycle, by round
    std::vector<double> ratios = {};  ///< to the first contestant of the same round
};

/// Lets all of them run in every round, one after the other.
inline void in_turns(std::vector<contestant>& all, const std::filesystem::path& at, int rounds, int cycles) {
    for (auto& c : all) c.run(at, cycles);  // for nothing: caches, threads, the first look at the directory
    for (int round = 0; round < rounds; ++round) {
        for (auto& c : all) {
            const auto begin = now_ns();
            c.run(at, cycles);
            c.us.push_back(microseconds_between(begin, now_ns()) / cycles);
            c.ratios.push_back(c.us.back() / all.front().us.back());
        }
    }
}

}  // namespace bench
