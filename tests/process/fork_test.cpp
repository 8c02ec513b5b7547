// fork and exec: what a child has of its parent's locks, and what its own need.
#include <boost/test/unit_test.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <asio/io_context.hpp>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "fslock/fslock.hpp"
#include "support/child.hpp"
#include "support/directory.hpp"
#include "support/filesystem.hpp"
#include "support/run_until.hpp"

namespace {

using namespace std::chrono_literals;
namespace asio = fslock::asio;
using fslock::error_code;
using fslock::lock_guard;
using fslock::options;
using support::child;
using support::run_until;
using fork_event = asio::execution_context::fork_event;

constexpr auto patience = 60s;

/// Where the kernel tells of changes, who has to wait for a poll or a heartbeat does not get anything while a test has
/// patience. Elsewhere these are all there is.
options never_polls() {
    static std::atomic<int> known{-1};  // no initialisation of a static: at a fork another thread may be in it
    if (known < 0) known = support::has_byte_locks() ? 1 : 0;
    const bool told = known == 1;
    options o;
    o.heartbeat_interval = told ? std::chrono::milliseconds(1h) : 25ms;
    o.poll_interval = told ? std::chrono::milliseconds(1min) : 5ms;
    return o;
}

/// Waits for the lock at `path` on `io`.
struct waiter {
    lock_guard lock;
    bool done = false;

    void wait(asio::io_context& io, const std::filesystem::path& path) {
        fslock::async_acquire(io, path, never_polls(), [this](error_code ec, lock_guard got) {
            BOOST_TEST(!ec);
            lock = std::move(got);
            done = true;
        });
    }
};

/// Ends the calling process, which a test forked itself.
[[noreturn]] void end_with(const std::string& wrong) {
    if (!wrong.empty()) (void)!::write(STDERR_FILENO, (wrong + '\n').data(), wrong.size() + 1);
    ::_exit(wrong.empty() ? 0 : 1);
}

bool ended_well(pid_t pid) {
    int status = -1;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return status == 0;
}

/// What a child does with the context of its parent: nothing of the parent's, and locks of its own.
std::string use_inherited(asio::io_context& io, waiter& inherited, lock_guard& held,
                          const std::filesystem::path& directory) {
    if (held.verify()) return "the parent's lock verifies";
    held.release();
    if (!std::filesystem::exists(directory / "held")) return "the parent's lock was released";
    waiter own;
    own.wait(io, directory / "own");
    if (!run_until(io, [&] { return own.done; })) return "no lock on the inherited context";
    if (inherited.done) return "a handler of the parent's was called";
    if (!own.lock.verify()) return "its own lock does not verify";
    waiter behind;
    behind.wait(io, directory / "held");
    if (io.restart(), io.run_for(50ms), behind.done) return "got what the parent holds";
    return "";
}

/// Another process image may be anywhere between: only what is not close-on-exec reaches it.
std::vector<std::string> descriptors_after_exec() {
    int out[2];
    if (::pipe(out) != 0) return {"no pipe"};
    const pid_t pid = ::fork();
    if (pid == 0) {
        (void)::dup2(out[1], STDOUT_FILENO);
        (void)::close(out[0]);
        (void)::close(out[1]);
        ::execl("/bin/sh", "sh", "-c", "for f in /proc/$$/fd/*; do readlink $f; done", nullptr);
        ::_exit(127);
    }
    (void)::close(out[1]);
    std::string text;
    char buffer[4096];
    for (ssize_t n = 0; (n = ::read(out[0], buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<size_t>(n));
    (void)::close(out[0]);
    (void)ended_well(pid);
    std::vector<std::string> all;
    for (std::size_t at = 0, end = 0; (end = text.find('\n', at)) != std::string::npos; at = end + 1)
        all.push_back(text.substr(at, end - at));
    return all;
}

/// ThreadSanitizer cannot follow the threads of a child that was forked while there were others.
boost::test_tools::assertion_result threads_in_children(boost::unit_test::test_unit_id) {
    boost::test_tools::assertion_result possible(true);
#if defined(__SANITIZE_THREAD__)
    possible = boost::test_tools::assertion_result(false);
    possible.message() << "ThreadSanitizer cannot follow the threads of a forked child";
#endif
    return possible;
}

boost::test_tools::assertion_result proc(boost::unit_test::test_unit_id) {
    boost::test_tools::assertion_result possible(std::filesystem::exists("/proc/self/fd"));
    possible.message() << "no /proc";
    return possible;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(forks, *boost::unit_test::precondition(threads_in_children))

BOOST_AUTO_TEST_CASE(a_context_that_is_told_of_a_fork_goes_on_in_parent_and_child,
                     *boost::unit_test::precondition(support::local_filesystem)) {
    const support::directory d;
    auto owner = fslock::acquire(d / "x");
    asio::io_context io;
    waiter held;
    held.wait(io, d / "held");
    BOOST_TEST_REQUIRE(run_until(io, [&] { return held.done; }));
    bool lost = false;
    held.lock.async_wait_lost([&](error_code ec) { lost = !ec; });
    waiter w;
    w.wait(io, d / "x");
    io.restart();
    (void)io.run_for(10ms);
    io.notify_fork(fork_event::fork_prepare);
    const pid_t pid = ::fork();
    if (pid == 0) {
        io.notify_fork(fork_event::fork_child);
        end_with(use_inherited(io, w, held.lock, d.path()));
    }
    io.notify_fork(fork_event::fork_parent);
    BOOST_TEST(ended_well(pid));
    owner.release();
    BOOST_TEST(run_until(io, [&] { return w.done; }));  // woken after the fork as before
    BOOST_TEST(held.lock.verify());
    std::filesystem::remove(d / "held");
    BOOST_TEST(run_until(io, [&] { return lost; }));
}

BOOST_AUTO_TEST_CASE(a_child_of_a_context_that_was_not_told_harms_nobody,
                     *boost::unit_test::precondition(support::local_filesystem)) {
    const support::directory d;
    auto owner = fslock::acquire(d / "x");
    asio::io_context io;
    waiter w;
    w.wait(io, d / "x");
    io.restart();
    (void)io.run_for(10ms);
    const pid_t pid = ::fork();
    if (pid == 0) {
        if (owner.verify()) end_with("the parent's lock verifies");
        owner = lock_guard();
        const auto own = fslock::acquire(d / "own");
        end_with(own && std::filesystem::exists(d / "x") ? "" : "no lock of its own");
    }
    BOOST_TEST(ended_well(pid));
    owner.release();
    BOOST_TEST(run_until(io, [&] { return w.done; }));
}

/// A thread of the parent may be anywhere in the library at the moment of a fork; it is not there in the child.
BOOST_AUTO_TEST_CASE(a_child_can_lock_whatever_other_threads_did_when_it_was_forked,
                     *boost::unit_test::precondition(support::forks_of_threads)) {
    const support::directory d;
    std::atomic<bool> stop{false};
    std::vector<std::thread> busy;
    for (int i = 0; i < 3; ++i) {
        busy.emplace_back([&, i] {
            options o = never_polls();
            o.durability = i == 0 ? fslock::durability::full : fslock::durability::relaxed;
            for (int n = 0; !stop; ++n) {
                const auto sub = d / ("sub" + std::to_string(i) + std::to_string(n % 7));
                (void)std::filesystem::create_directory(sub);
                const auto one = fslock::acquire(sub / "x", o);
                const auto other = fslock::try_acquire(d / "shared", 1ms, o);
                std::error_code ignored;
                if (n % 7 == 6) std::filesystem::remove_all(d / ("sub" + std::to_string(i) + "0"), ignored);
            }
        });
    }
    for (int i = 0; i < 100; ++i) {
        const pid_t pid = ::fork();
        if (pid == 0) {
            ::alarm(30);  // a child that blocks is killed
            options o = never_polls();
            o.durability = i % 2 == 0 ? fslock::durability::full : fslock::durability::relaxed;
            auto lock = fslock::acquire(d / ("own" + std::to_string(i)), o);
            const bool ours = lock.verify();
            lock.release();
            end_with(ours ? "" : "not its own");
        }
        BOOST_TEST(ended_well(pid), "child " << i);
    }
    stop = true;
    for (auto& t : busy) t.join();
}

BOOST_AUTO_TEST_CASE(no_descriptor_reaches_another_program,
                     *boost::unit_test::precondition(support::local_filesystem) *
                         boost::unit_test::precondition(proc)) {  // I05
    const auto before = descriptors_after_exec();
    const support::directory d;
    auto owner = fslock::acquire(d / "x");
    asio::io_context io;
    waiter held;
    held.wait(io, d / "held");
    BOOST_TEST_REQUIRE(run_until(io, [&] { return held.done; }));
    held.lock.async_wait_lost([](error_code) {});
    waiter w;
    w.wait(io, d / "x");
    // An owner without a witness is watched through its pid.
    options o = never_polls();
    o.witness = fslock::witness::off;
    auto unguarded = fslock::acquire(d / "y", o);
    waiter v;
    v.wait(io, d / "y");
    io.restart();
    (void)io.run_for(10ms);
    std::atomic<bool> stop{false};
    std::thread busy([&] {
        while (!stop) (void)fslock::acquire(d / "z").verify();
    });
    for (int i = 0; i < 50; ++i) {
        const auto after = descriptors_after_exec();
        BOOST_TEST_REQUIRE(after.size() == before.size(), "one more than before, such as " << after.back());
    }
    stop = true;
    busy.join();
    owner.release();
    BOOST_TEST(run_until(io, [&] { return w.done; }));
    unguarded.release();
    BOOST_TEST(run_until(io, [&] { return v.done; }));
}

BOOST_AUTO_TEST_SUITE_END()
