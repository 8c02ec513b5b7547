// Locks that are held on a mount when it begins to hang, or dies.
#include <asio/bind_executor.hpp>
#include <asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include "engine/asking.hpp"
#include "loop.hpp"
#include "support/child.hpp"

namespace {

using namespace support;
namespace asio = fslock::asio;
namespace ut = boost::unit_test;
using fslock::error_code;
using fslock::event_kind;
using fslock::lock_guard;
using stalling::call;

}  // namespace

BOOST_AUTO_TEST_SUITE(held)

BOOST_AUTO_TEST_CASE(a_guard_goes_on_a_hung_mount_without_blocking, *ut::precondition(fuse_mounts)) {
    stalling_mount m;
    const directory healthy;
    request dropped, released, held;
    bool answered = false;
    asio::io_context io;
    hold(io, m / "a", minutes(), dropped);
    hold(io, m / "b", minutes(), released);
    hold(io, healthy / "held", minutes(), held);
    m.stall_everything();
    dropped.lock = lock_guard();
    released.lock.async_release([&](error_code ec) {
        BOOST_TEST(!ec);
        answered = true;
    });
    pulse beats(healthy / "held");
    BOOST_TEST(run_until(io, [&] { return m.hangs() && beats.count() >= 5; }));
    BOOST_TEST(!answered);
    m.go_on();
    BOOST_TEST(run_until(io, [&] { return answered; }));
    BOOST_TEST(eventually([&] { return m.names().empty(); }));
}

BOOST_AUTO_TEST_CASE(a_guard_that_outlived_its_context_answers_on_another, *ut::precondition(fuse_mounts)) {
    stalling_mount m;
    request verified, waited;
    {
        asio::io_context io;
        hold(io, m / "a", minutes(), verified);
        hold(io, m / "b", minutes(), waited);
    }
    asio::io_context other;
    int answers = 0;
    const auto answered = [&](error_code ec) {
        BOOST_TEST(other.get_executor().running_in_this_thread());
        ++answers;
        return ec;
    };
    verified.lock.async_verify(asio::bind_executor(other, [&](error_code ec, bool ours) {
        BOOST_TEST(!answered(ec));
        BOOST_TEST(ours);
    }));
    BOOST_TEST_REQUIRE(run_until(other, [&] { return answers == 1; }));
    verified.lock.async_release(asio::bind_executor(other, [&](error_code ec) { BOOST_TEST(!answered(ec)); }));
    BOOST_TEST_REQUIRE(run_until(other, [&] { return answers == 2; }));
    waited.lock.async_wait_lost(asio::bind_executor(
        other, [&](error_code ec) { BOOST_TEST((answered(ec) == asio::error::operation_aborted)); }));
    BOOST_TEST_REQUIRE(run_until(other, [&] { return answers == 3; }));
    waited.lock.release();
    BOOST_TEST(m.names().empty());
}

BOOST_AUTO_TEST_CASE(a_beat_that_hangs_is_reported_while_it_hangs, *ut::precondition(fuse_mounts)) {
    stalling_mount m;
    const told t;
    request r;
    asio::io_context io;
    hold(io, m / "x", t.listening(minutes()), r);
    m.stall({call::open, call::write});
    BOOST_TEST_REQUIRE(run_until(io, [&] { return m.hangs(); }));
    BOOST_TEST(run_until(
        io, [&] { return t.has(event_kind::at_risk); }, promptly));
    BOOST_TEST(m.hangs());
    m.go_on();
    pulse beats(m.behind("x"));
    BOOST_TEST(run_until(io, [&] { return beats.count() >= 3; }));
    // Whoever was alarmed is told when it is over.
    BOOST_TEST(run_until(
        io, [&] { return t.has(event_kind::beat_recovered); }, promptly));
    BOOST_TEST(!t.has(event_kind::lost));
    BOOST_TEST(r.lock.verify());
    r.lock.release();
    BOOST_TEST(m.names().empty());
}

BOOST_AUTO_TEST_CASE(a_program_ends_although_the_mount_of_its_lock_hangs,
                     *ut::precondition(fuse_mounts) * ut::precondition(threads_in_children) *
                         ut::precondition(no_leak_checker)) {
    stalling_mount m;
    child program([&](child::pipe_to_parent& parent) {
        auto lock = fslock::acquire(m / "x", minutes());
        parent.say('h');
        (void)eventually([&] { return m.hangs(); });
        lock = {};
        std::exit(0);
    });
    BOOST_TEST_REQUIRE(program.hear() == 'h');
    m.stall_everything();
    BOOST_TEST(program.wait() == 0);
    m.go_on();
}

BOOST_AUTO_TEST_CASE(a_mount_that_comes_back_is_not_flooded_with_beats, *ut::precondition(fuse_mounts)) {
    stalling_mount m;
    request r;
    asio::io_context io;
    auto o = minutes();
    o.heartbeat_interval = 10ms;
    const auto run_for = [&](int intervals) {
        const auto began = std::chrono::steady_clock::now();
        const auto past = [&] { return (std::chrono::steady_clock::now() - began) / o.heartbeat_interval; };
        BOOST_TEST(run_until(io, [&] { return past() >= intervals; }));
        return past();
    };
    hold(io, m / "x", o, r);
    m.stall({call::open, call::write});
    BOOST_TEST_REQUIRE(run_until(io, [&] { return m.hangs(); }));
    (void)run_for(100);
    const auto before = m.count(call::write);
    m.go_on();
    const auto intervals = static_cast<std::uint64_t>(run_for(20));
    // One beat makes up for all that were missed; from then on they come at their pace.
    BOOST_TEST(m.count(call::write) - before <= 5 + 2 * intervals);
    BOOST_TEST(r.lock.verify());
}

BOOST_AUTO_TEST_CASE(a_mount_that_dies_ends_what_hangs_there, *ut::precondition(fuse_mounts)) {
    stalling_mount m;
    const directory healthy;
    const told t;
    request hung, held, other;
    asio::io_context io;
    hold(io, m / "held", t.listening(minutes()), held);
    hold(io, healthy / "held", minutes(), other);
    m.stall_everything();
    hang_at(io, m, m / "x", hung);
    m.die();
    BOOST_TEST(run_until(io, [&] { return hung.done(); }));
    BOOST_TEST(static_cast<bool>(hung.error));
    BOOST_TEST(!hung.lock);
    BOOST_TEST(run_until(io, [&] { return t.has(event_kind::lost) || t.has(event_kind::at_risk); }));
    pulse beats(healthy / "held");
    BOOST_TEST(run_until(io, [&] { return beats.count() >= 3; }));
}

BOOST_AUTO_TEST_SUITE_END()
