// A mount that hangs: what becomes of locks there, and that no other lock notices.
#include <unistd.h>

#include <asio/io_context.hpp>
#include <boost/test/unit_test.hpp>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "engine/asking.hpp"
#include "loop.hpp"
#include "support/child.hpp"

namespace {

using namespace support;
namespace asio = fslock::asio;
namespace ut = boost::unit_test;
using fslock::event_kind;
using fslock::lock_guard;
using stalling::call;
using stalling::naming;

/// Where an acquisition hangs: at its look at the directory, or at its first step there.
enum class hung_step { look, claim };

void stall_at(stalling_mount& m, hung_step which) {
    if (which == hung_step::look) {
        m.stall_everything();
    } else {
        m.stall({call::open, call::create, call::write, call::fsync, call::flush, call::link, call::rename});
    }
}

/// What others of the same loop can do: beat, acquire, wait, release.
void goes_on(asio::io_context& io, const std::filesystem::path& held, request& holder,
             const std::filesystem::path& other_directory) {
    pulse beats(held);
    BOOST_TEST(run_until(io, [&] { return beats.count() >= 5; }));
    request queued;
    fslock::async_acquire(io, held, minutes(), queued.handler());
    for (const auto& path : {held.parent_path() / "another", other_directory / "x"}) {
        request r;
        fslock::async_acquire(io, path, minutes(), r.handler());
        BOOST_TEST_REQUIRE(run_until(io, [&] { return r.done(); }));
        BOOST_TEST(static_cast<bool>(r.lock));
    }
    BOOST_TEST(!queued.done());
    holder.lock = lock_guard();
    BOOST_TEST_REQUIRE(run_until(io, [&] { return queued.done(); }));
    holder.lock = std::move(queued.lock);
}

/// Whatever was under way: nothing of it stays, and somebody else gets the lock.
void nothing_stays(const stalling_mount& m, const std::string& name) {
    BOOST_TEST(eventually([&] { return m.names().empty(); }), name << " stays");
    auto lock = fslock::try_acquire(m / name, patience, minutes());
    BOOST_TEST_REQUIRE(static_cast<bool>(lock));
    lock.release();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(slow)

BOOST_AUTO_TEST_CASE(a_hung_mount_leaves_the_locks_of_its_loop_alone, *ut::precondition(fuse_mounts)) {
    for (const auto step : {hung_step::look, hung_step::claim}) {
        stalling_mount m;
        const directory healthy, new_one;
        request hung, held;
        asio::io_context io;
        hold(io, healthy / "held", minutes(), held);
        stall_at(m, step);
        hang_at(io, m, m / "x", hung);
        goes_on(io, healthy / "held", held, new_one.path());
        BOOST_TEST(m.hangs());
        BOOST_TEST(!hung.done());
        m.go_on();
        BOOST_TEST(run_until(io, [&] { return hung.done(); }));
        BOOST_TEST(static_cast<bool>(hung.lock));
    }
}

BOOST_AUTO_TEST_CASE(a_hung_mount_leaves_another_mount_alone, *ut::precondition(fuse_mounts)) {
    for (const auto step : {hung_step::look, hung_step::claim}) {
        stalling_mount m;
        const stalling_mount healthy, new_one;
        request hung, held;
        asio::io_context io;
        hold(io, healthy / "held", minutes(), held);
        stall_at(m, step);
        hang_at(io, m, m / "x", hung);
        goes_on(io, healthy / "held", held, (new_one / "x").parent_path());
        BOOST_TEST(m.hangs());
        BOOST_TEST(!hung.done());
    }
}

BOOST_AUTO_TEST_CASE(blocking_calls_elsewhere_go_on_while_a_mount_hangs, *ut::precondition(fuse_mounts)) {
    for (const auto step : {hung_step::look, hung_step::claim}) {
        stalling_mount m;
        const directory healthy;
        const auto held = fslock::acquire(healthy / "held", minutes());
        stall_at(m, step);
        BOOST_TEST(!fslock::try_acquire(m / "x", 10ms, minutes()));
        BOOST_TEST(m.hangs());
        pulse beats(healthy / "held");
        BOOST_TEST(eventually([&] { return beats.count() >= 5; }));
        BOOST_TEST(static_cast<bool>(fslock::try_acquire(healthy / "x", patience, minutes())));
        m.go_on();
        nothing_stays(m, "x");
    }
}

BOOST_AUTO_TEST_CASE(a_timeout_is_kept_on_a_hung_mount, *ut::precondition(fuse_mounts)) {
    for (const auto step : {hung_step::look, hung_step::claim}) {
        stalling_mount m;
        request hung, same, once, late;
        asio::io_context io;
        stall_at(m, step);
        fslock::async_try_acquire(io, m / "x", 50ms, minutes(), hung.handler());
        fslock::async_try_acquire(io, m / "x", 50ms, minutes(), same.handler());
        fslock::async_try_acquire_once(io, m / "y", minutes(), once.handler());
        fslock::async_acquire(io, m / "z", minutes(), late.handler());
        for (auto* const r : {&hung, &same, &once}) {
            BOOST_TEST(run_until(
                io, [&] { return r->done(); }, promptly));
            BOOST_TEST(!r->error);
            BOOST_TEST(!r->lock);
        }
        BOOST_TEST(m.hangs());
        BOOST_TEST(!late.done());
        m.go_on();
        BOOST_TEST(run_until(io, [&] { return late.done(); }));
        late.lock = lock_guard();
        nothing_stays(m, "x");
        BOOST_TEST(hung.calls + same.calls + once.calls == 3);
    }
}

BOOST_AUTO_TEST_CASE(a_waiter_whose_look_hangs_keeps_its_timeout, *ut::precondition(fuse_mounts)) {
    stalling_mount m;
    const told t;
    request waiter;
    asio::io_context io;
    auto held = fslock::acquire(m / "x", minutes());  // lives on another context
    fslock::async_try_acquire(io, m / "x", 500ms, t.listening(minutes()), waiter.handler());
    BOOST_TEST(run_until(io, [&] { return t.has(event_kind::waiting) || waiter.done(); }));
    m.stall_everything();
    BOOST_TEST(run_until(
        io, [&] { return waiter.done(); }, promptly));
    BOOST_TEST(!waiter.error);
    BOOST_TEST(!waiter.lock);
    m.go_on();
    held.release();
    nothing_stays(m, "x");
}

BOOST_AUTO_TEST_CASE(a_cancellation_is_heard_on_a_hung_mount, *ut::precondition(fuse_mounts)) {
    for (const auto step : {hung_step::look, hung_step::claim}) {
        stalling_mount m;
        request hung, same, late;
        asio::io_context io;
        stall_at(m, step);
        hang_at(io, m, m / "x", hung);
        fslock::async_acquire(io, m / "x", minutes(), same.handler());
        fslock::async_acquire(io, m / "x", minutes(), late.handler());
        for (auto* const r : {&hung, &same}) {
            r->cancel();
            BOOST_TEST(run_until(
                io, [&] { return r->done(); }, promptly));
            BOOST_TEST(r->error == asio::error::operation_aborted);
            BOOST_TEST(!r->lock);
        }
        BOOST_TEST(m.hangs());
        BOOST_TEST(!late.done());
        m.go_on();
        BOOST_TEST(run_until(io, [&] { return late.done(); }));
        BOOST_TEST(static_cast<bool>(late.lock), "the next in line, of the same loop, gets it");
        late.lock = lock_guard();
        nothing_stays(m, "x");
    }
}

namespace {

enum class end_of_interest { cancelled, context_destroyed };

/// Asks for a lock on a mount that is about to hang, and loses interest when it does. Says whether it did.
bool lose_interest(const stalling_mount& m, const std::string& name, end_of_interest how) {
    request r;
    asio::io_context io;
    fslock::async_acquire(io, m / name, minutes(), r.handler());
    BOOST_TEST_REQUIRE(run_until(io, [&] { return r.done() || m.hangs(); }));
    if (r.done()) return false;
    if (how == end_of_interest::cancelled) {
        r.cancel();
        BOOST_TEST(run_until(
            io, [&] { return r.done(); }, promptly));
        BOOST_TEST(r.error == asio::error::operation_aborted);
    }
    return true;
}

/// With each of the calls that an acquisition makes, one after the other.
void nothing_stays_whichever_call_hangs(end_of_interest how) {
    constexpr int least = 10;  // look, create, write, sync, give a name, look again, close
    for (const auto names_by : {naming::links, naming::exclusive_renames, naming::neither}) {
        stalling_mount m(names_by);
        int calls = 0;
        for (bool hung = true; hung; ++calls) {
            BOOST_TEST_REQUIRE(calls < 1000);
            const auto name = fresh_name();
            m.stall_after(calls);
            hung = lose_interest(m, name, how);
            m.go_on();
            nothing_stays(m, name);
        }
        BOOST_TEST(calls >= least);
    }
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_cancelled_acquisition_leaves_nothing_once_its_call_returns,
                     *ut::precondition(fuse_mounts)) {
    nothing_stays_whichever_call_hangs(end_of_interest::cancelled);
}

BOOST_AUTO_TEST_CASE(a_context_may_end_while_a_call_hangs, *ut::precondition(fuse_mounts)) {
    nothing_stays_whichever_call_hangs(end_of_interest::context_destroyed);
}

namespace {

/// A process that holds a lock on the mount and asks for another one, both of which hang, and then ends in its
/// way.
void ends_while_a_call_hangs(void (*end)(std::unique_ptr<asio::io_context>)) {
    stalling_mount m;
    (void)std::fflush(nullptr);  // what is buffered here would be written once more by the child
    child c([&](child::pipe_to_parent& parent) {
        static request hung, held;
        auto io = std::make_unique<asio::io_context>();
        hold(*io, m / "held", minutes(), held);
        m.stall_everything();
        hang_at(*io, m, m / "x", hung);
        parent.say('h');
        end(std::move(io));
    });
    BOOST_TEST_REQUIRE(c.hear() == 'h');
    BOOST_TEST(c.wait() == 0);
    m.go_on();
    BOOST_TEST(static_cast<bool>(fslock::try_acquire(m / "held", patience, quick())));
    BOOST_TEST(static_cast<bool>(fslock::try_acquire(m / "x", patience, quick())));
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_process_may_end_while_a_call_hangs,
                     *ut::precondition(fuse_mounts) * ut::precondition(threads_in_children)) {
    ends_while_a_call_hangs([](std::unique_ptr<asio::io_context>) { std::quick_exit(0); });
    ends_while_a_call_hangs([](std::unique_ptr<asio::io_context> io) {
        io.reset();
        ::_exit(0);
    });
}

BOOST_AUTO_TEST_CASE(a_process_may_exit_while_a_call_hangs, *ut::precondition(fuse_mounts) *
                                                                ut::precondition(threads_in_children) *
                                                                ut::precondition(no_leak_checker)) {
    ends_while_a_call_hangs([](std::unique_ptr<asio::io_context>) { std::exit(0); });
}

BOOST_AUTO_TEST_SUITE_END()
