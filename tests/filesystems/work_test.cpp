// A lock that is held on a mount is work of its context, as one elsewhere is, although the context does not beat it.
#include "engine/registry.hpp"

#include <asio/execution_context.hpp>
#include <asio/io_context.hpp>
#include <asio/thread_pool.hpp>
#include <asio/use_future.hpp>
#include <boost/test/unit_test.hpp>
#include <future>
#include <thread>

#include "engine/asking.hpp"
#include "loop.hpp"
#include "support/child.hpp"

namespace {

using namespace support;
namespace asio = fslock::asio;
namespace ut = boost::unit_test;
using fork_event = asio::execution_context::fork_event;
using fslock::lock_guard;

/// Whether `io` has anything left to do, now or later.
bool has_work(asio::io_context& io) {
    io.restart();
    (void)io.poll();
    return !io.stopped();
}

/// Runs `io` for as long as it has work; whether it came to an end.
bool runs_dry(asio::io_context& io) {
    io.restart();
    (void)io.run_for(promptly);
    return io.stopped();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(work, *ut::precondition(fuse_mounts))

BOOST_AUTO_TEST_CASE(a_context_has_work_while_a_lock_on_a_mount_is_held) {
    const stalling_mount m;
    request first, second, third;
    asio::io_context io;
    hold(io, m / "x", never_beats(), first);
    hold(io, m / "y", never_beats(), second);
    BOOST_TEST(has_work(io));
    first.lock.release();
    BOOST_TEST(has_work(io));
    second.lock.release();
    BOOST_TEST(runs_dry(io));
    hold(io, m / "x", never_beats(), third);
    BOOST_TEST(has_work(io));
    std::thread other([lock = std::move(third.lock)]() mutable { lock.release(); });
    BOOST_TEST(runs_dry(io));
    other.join();
}

BOOST_AUTO_TEST_CASE(a_context_with_nothing_but_a_lost_lock_on_a_mount_says_so_and_runs_dry) {
    const stalling_mount m;
    for (int round = 0; round < 20; ++round) {
        const told t;
        request r;
        asio::io_context io;
        hold(io, m / "x", t.listening(minutes()), r);
        BOOST_TEST(has_work(io));
        std::filesystem::remove(m.behind("x"));
        BOOST_TEST(runs_dry(io));
        BOOST_TEST(t.of(fslock::event_kind::lost).size() == 1U);
    }
}

BOOST_AUTO_TEST_CASE(a_guard_that_is_gone_is_no_work_even_while_its_mount_hangs) {
    stalling_mount m;
    request r;
    asio::io_context io;
    hold(io, m / "x", never_beats(), r);
    m.stall_everything();
    r.lock = lock_guard();
    BOOST_TEST(runs_dry(io));
    BOOST_TEST(eventually([&] { return m.hangs(); }));
    m.go_on();
    BOOST_TEST(eventually([&] { return m.names().empty(); }));
}

BOOST_AUTO_TEST_CASE(an_end_of_work_does_not_stop_a_context_that_nobody_runs) {
    const stalling_mount m;
    request r;
    asio::io_context io;
    hold(io, m / "x", never_beats(), r);
    BOOST_TEST(has_work(io));
    r.lock.release();
    BOOST_TEST(!io.stopped());
}

BOOST_AUTO_TEST_CASE(a_context_may_end_before_a_lock_on_a_mount) {
    const stalling_mount m;
    lock_guard of_pool;
    request of_loop;
    {
        asio::thread_pool threads(1);
        asio::io_context io;
        of_pool = fslock::async_acquire(threads, m / "x", never_beats(), asio::use_future).get();
        hold(io, m / "y", never_beats(), of_loop);
        BOOST_TEST(has_work(io));
    }
    BOOST_TEST(of_pool.verify());
    of_pool.release();
    of_loop.lock.release();
    BOOST_TEST(m.names().empty());
}

BOOST_AUTO_TEST_CASE(a_lock_on_a_mount_is_no_work_of_the_context_of_a_forked_child,
                     *ut::precondition(threads_in_children)) {
    const stalling_mount m;
    request r;
    asio::io_context io;
    hold(io, m / "x", never_beats(), r);
    // Takes its mutex, so the thread that completed the acquisition is done with the context.
    (void)fslock::engine::registry_of(io.get_executor())->executor();
    BOOST_TEST(has_work(io));
    io.notify_fork(fork_event::fork_prepare);
    child forked([&](child::pipe_to_parent& parent) {
        io.notify_fork(fork_event::fork_child);
        parent.say(io.stopped() ? 's' : '-');
        parent.say(runs_dry(io) ? 'd' : '-');
    });
    io.notify_fork(fork_event::fork_parent);
    BOOST_TEST(forked.hear() == '-');
    BOOST_TEST(forked.hear() == 'd');
    BOOST_TEST(has_work(io));
    r.lock.release();
    BOOST_TEST(runs_dry(io));
}

BOOST_AUTO_TEST_SUITE_END()
