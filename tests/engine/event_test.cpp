// What an owner and its waiters are told: what, once, in what order, where, and for how long.
#include <asio/bind_cancellation_slot.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/io_context.hpp>
#include <asio/strand.hpp>
#include <asio/thread_pool.hpp>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <thread>

#include "crafted.hpp"
#include "fslock/fslock.hpp"
#include "support/directory.hpp"
#include "support/run_until.hpp"

namespace {

using namespace support;
namespace asio = fslock::asio;
using fslock::error_code;
using fslock::event;
using fslock::event_kind;
using fslock::lock_guard;
using fslock::options;
using fslock::proof;
using std::filesystem::path;

/// A waiter for the lock at `p`, on a context of its own.
class waiter {
 public:
    waiter(const path& p, const options& o) {
        fslock::async_acquire(io_, p, o, [this](error_code ec, lock_guard got) {
            BOOST_TEST(!ec);
            lock = std::move(got);
        });
    }
    bool run_until_told(const told& t, event_kind kind) {
        return run_until(io_, [&] { return t.has(kind); });
    }
    bool run_until_owner() {
        return run_until(io_, [&] { return static_cast<bool>(lock); });
    }
    /// Some more polls.
    void run_on() {
        for (int i = 0; i < 20; ++i) (void)io_.run_one_for(patience);
    }

 private:
    asio::io_context io_;

 public:
    lock_guard lock;
};

std::string kinds(const told& t) {
    std::string all;
    for (const auto& e : t.all()) all += std::string(to_string(e.kind)) + ' ';
    return all;
}

std::string names(std::initializer_list<event_kind> expected) {
    std::string all;
    for (const auto k : expected) all += std::string(to_string(k)) + ' ';
    return all;
}

/// Looks every millisecond, whether anything happens or not.
options quick() {
    auto o = minutes();
    o.events = fslock::events::off;
    o.heartbeat_interval = 1ms;
    o.poll_interval = 1ms;
    return o;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(events)

BOOST_AUTO_TEST_CASE(a_waiter_is_told_once_whom_it_waits_for) {
    const directory d;
    auto o = minutes();
    o.label = "the owner";
    auto lock = fslock::acquire(d / "x", o);
    told t;
    waiter w(d / "x", t.listening(quick()));
    BOOST_TEST(w.run_until_told(t, event_kind::waiting));
    w.run_on();
    BOOST_TEST(kinds(t) == names({event_kind::waiting}));
    const auto said = t.all().at(0);
    BOOST_TEST(said.path == d / "x");
    BOOST_TEST(said.owner.pid == ::getpid());
    BOOST_TEST(said.owner.this_process);
    BOOST_TEST(said.owner.label == "the owner");
    BOOST_TEST(said.owner.writer_epoch == lock.writer_epoch());
    BOOST_TEST((said.proof != proof::none));
    lock.release();
    BOOST_TEST(w.run_until_owner());
    BOOST_TEST(kinds(t) == names({event_kind::waiting}));
}

BOOST_AUTO_TEST_CASE(a_waiter_behind_a_lock_of_its_own_context_is_told_as_well) {
    const directory d;
    for (int round = 0; round < 2; ++round) {  // the directory is new, then known
        asio::io_context io;
        told t;
        lock_guard first;
        bool second = false;
        fslock::async_acquire(io, d / "x", minutes(), [&](error_code, lock_guard got) { first = std::move(got); });
        BOOST_TEST(run_until(io, [&] { return static_cast<bool>(first); }));
        fslock::async_acquire(io, d / "x", t.listening(minutes()), [&](error_code, lock_guard got) { second = !!got; });
        BOOST_TEST(run_until(io, [&] { return t.has(event_kind::waiting); }));
        BOOST_TEST(t.all().at(0).owner.this_process);
        BOOST_TEST(t.all().at(0).owner.writer_epoch == first.writer_epoch());
        first.release();
        BOOST_TEST(run_until(io, [&] { return second; }));
        BOOST_TEST(kinds(t) == names({event_kind::waiting}));
    }
}

BOOST_AUTO_TEST_CASE(a_wait_that_ends_in_a_takeover_is_told_in_order, *boost::unit_test::precondition(linux_facilities)) {
    const directory d;
    child owner(live_on);
    const auto p = d / fresh_name();
    peer_record(owner.pid()).write(p);
    told t;
    waiter w(p, t.listening(quick()));
    BOOST_TEST(w.run_until_told(t, event_kind::waiting));
    owner.kill_and_reap();
    BOOST_TEST(w.run_until_owner());
    BOOST_TEST(w.run_until_told(t, event_kind::reclaimed));
    BOOST_TEST(kinds(t) == names({event_kind::waiting, event_kind::reclaimed}));
    BOOST_TEST(t.all().at(0).owner.pid == owner.pid());
    BOOST_TEST((t.all().at(0).proof == proof::process_alive));
    BOOST_TEST(t.all().at(1).owner.pid == owner.pid());
    BOOST_TEST((t.all().at(1).proof == proof::process_gone));
}

BOOST_AUTO_TEST_CASE(a_late_heartbeat_of_a_living_owner_is_told_once, *boost::unit_test::precondition(linux_facilities)) {
    const directory d;
    child owner(live_on);
    const auto p = d / fresh_name();
    peer_record(owner.pid()).beaten_before(1h).write(p, 1h);
    told t;
    waiter w(p, t.listening(quick()));
    BOOST_TEST(w.run_until_told(t, event_kind::stale_but_alive));
    w.run_on();
    const auto said = t.of(event_kind::stale_but_alive);
    BOOST_TEST(said.size() == 1U);
    BOOST_TEST(said.at(0).owner.pid == owner.pid());
    BOOST_TEST(said.at(0).age.count() >= milliseconds(10min).count());
    BOOST_TEST(!w.lock);
}

BOOST_AUTO_TEST_CASE(a_living_owner_is_not_late_by_less_than_three_of_its_intervals,
                     *boost::unit_test::precondition(linux_facilities)) {
    const directory d;
    child owner(live_on);
    const auto p = d / fresh_name();
    constexpr auto interval = std::chrono::duration_cast<milliseconds>(30min);
    auto late = peer_record(owner.pid()).set("heartbeat_ms", std::to_string(interval.count())).beaten_before(1h);
    late.write(p, 1h);
    told t;
    waiter w(p, t.listening(quick()));
    BOOST_TEST(w.run_until_told(t, event_kind::waiting));
    w.run_on();
    BOOST_TEST(!t.has(event_kind::stale_but_alive));
}

BOOST_AUTO_TEST_CASE(a_long_hold_is_told_once) {
    const directory d;
    auto lock = fslock::acquire(d / "x");
    told t;
    auto o = quick();
    o.warn_after = 1ms;
    waiter w(d / "x", t.listening(o));
    BOOST_TEST(w.run_until_told(t, event_kind::held_long));
    w.run_on();
    BOOST_TEST(t.of(event_kind::held_long).size() == 1U);
    BOOST_TEST(lock.verify());
}

BOOST_AUTO_TEST_CASE(a_beat_tells_a_loss_and_is_the_last) {
    const directory d;
    told t;
    waiter owner(d / "x", t.listening(quick()));
    BOOST_TEST(owner.run_until_owner());
    std::filesystem::remove(d / "x");
    BOOST_TEST(owner.run_until_told(t, event_kind::lost));
    BOOST_TEST(owner.lock.lost());
    BOOST_TEST(!owner.lock.verify());
    BOOST_TEST((t.all().at(0).error == fslock::errc::lost));
    BOOST_TEST(t.all().at(0).owner.this_process);
    error_code ec;
    owner.lock.release(ec);
    BOOST_TEST((ec == fslock::errc::lost));
    BOOST_TEST(kinds(t) == names({event_kind::lost}));
    BOOST_TEST(d.empty());
}

BOOST_AUTO_TEST_CASE(a_context_with_nothing_but_a_lost_lock_runs_dry) {
    const directory d;
    asio::io_context io;
    int lost = 0;
    auto o = quick();
    o.on_event = [&](const event& e) { lost += e.kind == event_kind::lost; };
    lock_guard lock;
    fslock::async_acquire(io, d / "x", o, [&](error_code, lock_guard got) {
        lock = std::move(got);
        std::filesystem::remove(d / "x");
    });
    (void)io.run_for(patience);
    BOOST_TEST(io.stopped());
    BOOST_TEST(lost == 1);
}

BOOST_AUTO_TEST_CASE(events_come_on_the_executor_of_the_operation_one_at_a_time) {
    const directory d;
    asio::thread_pool threads(4);
    const auto strand = asio::make_strand(threads);
    std::atomic<int> inside{0}, wrong{0}, heard{0};
    auto o = quick();
    o.warn_after = 1ms;
    o.on_event = [&](const event&) {
        wrong += inside.fetch_add(1) != 0 || !strand.running_in_this_thread();
        std::this_thread::yield();
        inside.fetch_sub(1);
        ++heard;
    };
    auto holder = fslock::acquire(d / "x");
    std::atomic<int> got{0};
    for (int i = 0; i < 4; ++i)
        fslock::async_acquire(strand, d / "x", o, [&](error_code ec, const lock_guard& lock) { got += !ec && lock; });
    BOOST_TEST(eventually([&] { return heard >= 2; }));
    holder.release();
    threads.join();
    BOOST_TEST(got == 4);
    BOOST_TEST(wrong == 0);
}

BOOST_AUTO_TEST_CASE(an_event_may_call_fslock) {
    const directory d;
    asio::io_context io;
    asio::cancellation_signal signal;
    lock_guard holder;
    fslock::async_acquire(io, d / "x", minutes(), [&](error_code, lock_guard got) { holder = std::move(got); });
    BOOST_TEST(run_until(io, [&] { return static_cast<bool>(holder); }));
    auto o = quick();
    int refused = 0, other = 0, got = 0;
    o.on_event = [&](const event& e) {
        if (e.kind != event_kind::waiting) return;
        refused += !fslock::try_acquire_once(d / "x");
        fslock::async_acquire(io, d / "y", [&](error_code ec, const lock_guard& lock) { other += !ec && lock; });
        holder.release();
    };
    fslock::async_acquire(io, d / "x", o, [&](error_code ec, const lock_guard& lock) { got += !ec && lock; });
    BOOST_TEST(run_until(io, [&] { return got == 1 && other == 1; }));
    BOOST_TEST(refused == 1);
}

BOOST_AUTO_TEST_CASE(an_event_of_a_blocking_acquisition_is_not_to_block, *boost::unit_test::timeout(60)) {
    const directory d;
    auto held = fslock::acquire(d / "x", minutes());
    auto o = quick();
    error_code said;
    o.on_event = [&](const event& e) {
        if (e.kind != event_kind::waiting) return;
        BOOST_TEST(!fslock::try_acquire(d / "y", patience, options(), said));
        held.release();
    };
    BOOST_TEST(static_cast<bool>(fslock::acquire(d / "x", o)));
    BOOST_TEST((said == std::errc::resource_deadlock_would_occur));
}

BOOST_AUTO_TEST_CASE(an_event_may_cancel_its_own_operation) {
    const directory d;
    asio::io_context io;
    asio::cancellation_signal signal;
    const auto holder = fslock::acquire(d / "x");
    auto o = quick();
    o.on_event = [&](const event&) { signal.emit(asio::cancellation_type::terminal); };
    error_code ended;
    const auto handler = [&](error_code ec, const lock_guard&) { ended = ec; };
    fslock::async_acquire(io, d / "x", o, asio::bind_cancellation_slot(signal.slot(), handler));
    BOOST_TEST(run_until(io, [&] { return static_cast<bool>(ended); }));
    BOOST_TEST((ended == asio::error::operation_aborted));
    BOOST_TEST(d.names().size() == 1U);
}

BOOST_AUTO_TEST_CASE(a_context_drops_the_strand_and_the_listener_of_a_lock_that_outlives_it) {
    const directory d;
    const auto trace = std::make_shared<int>(0);
    lock_guard lock;
    {
        asio::io_context io;
        auto strand = asio::make_strand(io);
        auto o = quick();
        o.on_event = [trace](const event&) { ++*trace; };
        fslock::async_acquire(strand, d / "x", o, [&](error_code, lock_guard got) { lock = std::move(got); });
        BOOST_TEST(run_until(io, [&] { return static_cast<bool>(lock); }));
    }
    BOOST_TEST(trace.use_count() == 1);
    std::filesystem::remove(d / "x");
    BOOST_TEST(!lock.verify());
    BOOST_TEST(*trace == 0);
    lock = lock_guard();
}

BOOST_AUTO_TEST_CASE(a_strand_may_die_while_another_thread_reports_to_it) {
    const directory d;
    for (int round = 0; round < 200; ++round) {
        const auto trace = std::make_shared<std::atomic<int>>(0);
        std::atomic<bool> go{false};
        std::thread other;
        {
            asio::io_context io;
            const auto strand = asio::make_strand(io);
            auto o = minutes();
            o.on_event = [trace](const event&) { ++*trace; };
            lock_guard lock;
            fslock::async_acquire(strand, d / "x", o, [&](error_code, lock_guard got) { lock = std::move(got); });
            o.on_event = nullptr;
            BOOST_TEST_REQUIRE(run_until(io, [&] { return static_cast<bool>(lock); }));
            std::filesystem::remove(d / "x");
            other = std::thread([&go, lock = std::move(lock)]() mutable {
                while (!go) std::this_thread::yield();
                (void)lock.verify();
            });
            go = true;
        }
        other.join();
        BOOST_TEST(*trace == 0);
        BOOST_TEST(trace.use_count() == 1);
    }
}

BOOST_AUTO_TEST_SUITE_END()
