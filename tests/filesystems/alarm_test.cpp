// What waits on a mount is woken by the alarm of the process.
#include "engine/alarm.hpp"

#include <asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include "loop.hpp"

namespace {

using namespace support;
namespace asio = fslock::asio;
namespace ut = boost::unit_test;
using fslock::engine::alarm;
using stalling::call;

}  // namespace

BOOST_AUTO_TEST_SUITE(alarms)

BOOST_AUTO_TEST_CASE(a_waiter_that_polls_beside_a_held_lock_does_not_multiply_alarms, *ut::precondition(fuse_mounts)) {
    constexpr std::uint64_t looks = 300;
    constexpr std::size_t few = 10;
    const stalling_mount m;
    const auto owner = fslock::acquire(m / "x", never_beats());  // lives on another context
    auto polling = never_beats();
    polling.poll_interval = 1ms;
    request held, waiter;
    asio::io_context io;
    hold(io, m / "held", never_beats(), held);
    const auto alarms_before = alarm::instance().pending();
    const auto looks_before = m.count(call::open);
    fslock::async_acquire(io, m / "x", polling, waiter.handler());
    BOOST_TEST(run_until(io, [&] { return m.count(call::open) >= looks_before + looks; }));
    BOOST_TEST(!waiter.done());
    BOOST_TEST(alarm::instance().pending() <= alarms_before + few);
}

BOOST_AUTO_TEST_SUITE_END()
