// A handler that computes for long on the only thread of its loop, while locks on a mount are held and awaited.
#include <unistd.h>

#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <boost/test/unit_test.hpp>

#include "engine/asking.hpp"
#include "loop.hpp"
#include "support/child.hpp"

namespace {

using namespace support;
namespace asio = fslock::asio;
namespace ut = boost::unit_test;

}  // namespace

BOOST_AUTO_TEST_SUITE(busy)

BOOST_AUTO_TEST_CASE(beats_on_a_mount_do_not_wait_for_a_busy_loop, *ut::precondition(fuse_mounts)) {
    constexpr int wanted = 40;
    const stalling_mount m;
    request r;
    asio::io_context io;
    const auto o = minutes();
    hold(io, m / "x", o, r);
    int seen = -1;
    asio::post(io, [&] {
        // On the only thread of the loop, until the beats have come, or came ten times too slowly.
        const auto end = std::chrono::steady_clock::now() + 10 * wanted * o.heartbeat_interval;
        pulse beats(m.behind("x"));
        do {
            std::this_thread::sleep_for(1ms);
            seen = beats.count();
        } while (seen < wanted && std::chrono::steady_clock::now() < end);
    });
    BOOST_TEST(run_until(io, [&] { return seen >= 0; }));
    BOOST_TEST(seen >= wanted);
    r.lock.release();
    BOOST_TEST(m.names().empty());
}

BOOST_AUTO_TEST_CASE(a_waiter_on_a_mount_does_not_wait_for_a_busy_loop,
                     *ut::precondition(fuse_mounts) * ut::precondition(threads_in_children)) {
    const stalling_mount m;
    child owner([&](child::pipe_to_parent& parent) {
        auto lock = fslock::acquire(m / "x", minutes());
        parent.say('o');
        (void)parent.hear();
        lock.release();
        parent.say('r');
        live_on(parent);
    });
    BOOST_TEST_REQUIRE(owner.hear() == 'o');
    const told t;
    request waiter;
    asio::io_context io;
    fslock::async_acquire(io, m / "x", t.listening(minutes()), waiter.handler());
    BOOST_TEST_REQUIRE(run_until(io, [&] { return t.has(fslock::event_kind::waiting); }));
    bool over = false;
    bool got = false;
    asio::post(io, [&] {
        // Busy until the lock is ours: nothing else can happen on this loop.
        owner.say('!');
        BOOST_TEST(owner.hear() == 'r');
        const auto end = std::chrono::steady_clock::now() + promptly;
        while (!got && std::chrono::steady_clock::now() < end) {
            std::this_thread::sleep_for(1ms);
            got = field_of(read_file(m.behind("x")), "pid") == std::to_string(::getpid());
        }
        BOOST_TEST(!waiter.done());
        over = true;
    });
    BOOST_TEST(run_until(io, [&] { return over; }));
    BOOST_TEST(got);
    BOOST_TEST(run_until(io, [&] { return waiter.done(); }));
    BOOST_TEST(waiter.lock.verify());
    waiter.lock.release();
    BOOST_TEST(m.names().empty());
}

BOOST_AUTO_TEST_SUITE_END()
