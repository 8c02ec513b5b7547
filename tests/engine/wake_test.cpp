// Woken by the kernel: waiters by a release, a death or a change, and not by the next poll.
#include <sched.h>
#include <unistd.h>

#include <asio/io_context.hpp>
#include <boost/test/unit_test.hpp>
#include <fstream>
#include <map>
#include <thread>

#include "asking.hpp"
#include "crafted.hpp"
#include "fslock/fslock.hpp"
#include "support/child.hpp"
#include "support/directory.hpp"
#include "support/run_until.hpp"

namespace {

using namespace support;
namespace asio = fslock::asio;
using fslock::error_code;
using fslock::event_kind;
using fslock::lock_guard;
using fslock::options;
using std::filesystem::path;

/// Somebody who waits for the lock at `p`, and how often its context had something to do.
class waiter {
 public:
    waiter(const path& p, const options& o) {
        fslock::async_acquire(io_, p, o, [this](error_code ec, lock_guard got) {
            error = ec;
            lock = std::move(got);
            done = true;
        });
    }
    /// Until nothing is left to do but to wait.
    void settle() {
        while (io_.poll_one() != 0) {
        }
    }
    bool run_until_done() { return run_until([&] { return done; }); }
    bool run_until(const std::function<bool()>& condition) { return support::run_until(io_, condition); }
    /// How many handlers run within some time, none of them ours.
    std::size_t handlers_within(milliseconds time) { return io_.run_for(time); }

 private:
    asio::io_context io_;

 public:
    lock_guard lock;
    error_code error;
    bool done = false;
};

bool got_it(waiter& w) { return w.run_until_done() && !w.error && w.lock; }

/// Waits as long as it takes for the lock at `p` and says `o` when it has it.
void child_waits(child::pipe_to_parent& parent, const path& p, const options& o) {
    const auto lock = fslock::acquire(p, o);
    parent.say('o');
    (void)parent.hear();
}

/// In a user namespace of its own a process may limit itself (namespaces(7), /proc/sys/user).
bool allow_none(const char* what) {
    if (::unshare(CLONE_NEWUSER) != 0) return false;
    std::ofstream limit(std::string("/proc/sys/user/") + what);
    limit << 0 << std::flush;
    return limit.good();
}

boost::test_tools::assertion_result inotify_can_be_limited(boost::unit_test::test_unit_id id) {
    if (auto followed = threads_in_children(id); !followed) return followed;
    const auto problem = in_child([] { return allow_none("max_inotify_watches") ? "" : "no"; });
    boost::test_tools::assertion_result possible(problem.empty());
    if (!possible) possible.message() << "user namespaces cannot be made here";
    return possible;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(wake, *boost::unit_test::precondition(linux_facilities))

BOOST_AUTO_TEST_CASE(a_release_in_another_context_wakes) {
    const directory d;
    auto owner = fslock::acquire(d / "x", minutes());
    waiter w(d / "x", never_polls());
    w.settle();
    owner.release();
    BOOST_TEST(got_it(w));
}

BOOST_AUTO_TEST_CASE(a_release_between_the_look_and_the_watch_is_not_missed) {
    const directory d;
    for (int i = 0; i < 200; ++i) {
        auto owner = fslock::acquire(d / "x", minutes());
        std::thread releases([&] { owner.release(); });
        waiter w(d / "x", never_polls());
        BOOST_TEST_REQUIRE(got_it(w), "round " << i);
        releases.join();
    }
}

BOOST_AUTO_TEST_CASE(a_release_in_another_process_wakes, *boost::unit_test::precondition(threads_in_children)) {
    const directory d;
    auto owner = fslock::acquire(d / "x", minutes());
    child other([&](child::pipe_to_parent& parent) {
        parent.say('w');
        child_waits(parent, d / "x", never_polls());
    });
    BOOST_TEST(other.hear() == 'w');
    BOOST_TEST(!other.speaks_within(50));
    owner.release();
    BOOST_TEST(other.hear() == 'o');
}

BOOST_AUTO_TEST_CASE(the_death_of_an_owner_with_a_witness_wakes, *boost::unit_test::precondition(threads_in_children)) {
    const directory d;
    child owner([&](child::pipe_to_parent& parent) { child_waits(parent, d / "x", minutes()); });
    BOOST_TEST(owner.hear() == 'o');
    waiter w(d / "x", never_polls());
    w.settle();
    owner.signal(SIGKILL);  // and nobody reaps it
    BOOST_TEST(got_it(w));
}

BOOST_AUTO_TEST_CASE(the_death_of_an_owner_without_a_witness_wakes,
                     *boost::unit_test::precondition(threads_in_children)) {
    const directory d;
    child owner([&](child::pipe_to_parent& parent) {
        auto o = minutes();
        o.witness = fslock::witness::off;
        child_waits(parent, d / "x", o);
    });
    BOOST_TEST(owner.hear() == 'o');
    waiter w(d / "x", never_polls());
    w.settle();
    owner.signal(SIGKILL);
    BOOST_TEST(got_it(w));
}

BOOST_AUTO_TEST_CASE(an_owner_that_begins_another_program_wakes, *boost::unit_test::precondition(threads_in_children)) {
    const directory d;
    child owner([&](child::pipe_to_parent& parent) {
        const auto lock = fslock::acquire(d / "x", minutes());
        parent.say('o');
        (void)parent.hear();
        ::execlp("sleep", "sleep", "600", nullptr);
    });
    BOOST_TEST(owner.hear() == 'o');
    waiter w(d / "x", never_polls());
    w.settle();
    owner.say('e');
    BOOST_TEST(got_it(w));
}

BOOST_AUTO_TEST_CASE(a_record_that_is_removed_renamed_or_replaced_by_hand_wakes) {
    for (const int how : {0, 1, 2}) {
        const directory d;
        child owner(live_on);
        peer_record(owner.pid()).write(d / "x");
        waiter w(d / "x", never_polls());
        w.settle();
        BOOST_TEST(!w.done);
        if (how == 0) std::filesystem::remove(d / "x");
        if (how == 1) std::filesystem::rename(d / "x", d / "y");
        if (how == 2) {
            peer_record(dead_pid).write(d / "new");
            std::filesystem::rename(d / "new", d / "x");
        }
        BOOST_TEST(got_it(w), how);
    }
}

BOOST_AUTO_TEST_CASE(a_waiter_follows_the_lock_from_owner_to_owner) {
    const directory d;
    auto owner = fslock::acquire(d / "x", minutes());
    waiter first(d / "x", never_polls());
    waiter second(d / "x", never_polls());
    first.settle();
    second.settle();
    owner.release();
    BOOST_TEST(got_it(first));
    second.settle();
    BOOST_TEST(!second.done);
    first.lock.release();
    BOOST_TEST(got_it(second));
}

BOOST_AUTO_TEST_CASE(who_waits_for_an_owner_that_beats_and_is_looked_at_has_nothing_to_do) {
    const directory d;
    auto o = minutes();
    o.heartbeat_interval = 1ms;
    auto owner = fslock::acquire(d / "x", o);
    waiter w(d / "x", never_polls());
    w.settle();
    for (int i = 0; i < 20; ++i) (void)fslock::inspect(d / "x");
    BOOST_TEST(w.handlers_within(100ms) == 0U);
    owner.release();
    BOOST_TEST(got_it(w));
}

/// More than the queue of changes can keep: of two records in turns, since the kernel merges what repeats itself.
BOOST_AUTO_TEST_CASE(when_changes_were_lost_everybody_looks) {
    const directory d;
    std::size_t kept = 0;
    std::ifstream("/proc/sys/fs/inotify/max_queued_events") >> kept;
    asio::io_context io;
    std::map<std::string, lock_guard> got;
    child owner(live_on);
    for (const char* const name : {"a", "b"}) peer_record(owner.pid()).write(d / name);
    auto lock = fslock::acquire(d / "c", minutes());
    for (const char* const name : {"a", "b", "c"})
        fslock::async_acquire(io, d / name, never_polls(),
                              [&got, name](error_code, lock_guard l) { got[name] = std::move(l); });
    while (io.poll_one() != 0) {
    }
    for (std::size_t i = 0; i <= kept / 2; ++i)
        for (const char* const name : {"a", "b"}) age_file(d / name, 1s);
    lock.release();
    const auto end = std::chrono::steady_clock::now() + patience / 2;
    while (got.empty() && std::chrono::steady_clock::now() < end) (void)io.run_one_for(10ms);
    BOOST_TEST(got.contains("c"));
}

BOOST_AUTO_TEST_CASE(nothing_is_watched_when_nobody_waits) {
    const directory d;
    asio::io_context io;
    auto owner = fslock::acquire(d / "x", minutes());
    bool ended = false;
    fslock::async_try_acquire(io, d / "x", 20ms, never_polls(), [&](error_code ec, lock_guard lock) {
        BOOST_TEST(!ec);
        BOOST_TEST(!lock);
        ended = true;
    });
    io.run_for(patience);  // a watch is work
    BOOST_TEST(ended);
    BOOST_TEST(io.stopped());
}

BOOST_AUTO_TEST_CASE(without_events_a_waiter_polls) {
    const directory d;
    auto owner = fslock::acquire(d / "x", minutes());
    auto o = minutes();
    o.events = fslock::events::off;
    waiter w(d / "x", o);
    w.settle();
    BOOST_TEST(w.handlers_within(100ms) > 0U);
    owner.release();
    BOOST_TEST(got_it(w));
}

BOOST_AUTO_TEST_CASE(where_the_kernel_cannot_tell_a_waiter_polls_and_says_so_once,
                     *boost::unit_test::precondition(inotify_can_be_limited)) {
    for (const auto* limit : {"max_inotify_instances", "max_inotify_watches"}) {
        const directory d;
        auto owner = fslock::acquire(d / "x", minutes());
        child other([&](child::pipe_to_parent& parent) {
            told t;
            if (!allow_none(limit)) ::_exit(1);
            waiter w(d / "x", t.listening(minutes()));
            const bool told_so = w.run_until([&] { return t.has(event_kind::polling); });
            parent.say(told_so && t.of(event_kind::polling)[0].error ? 'p' : 'n');
            const bool owns = got_it(w);
            parent.say(owns && t.of(event_kind::polling).size() == 1 ? 'o' : 'n');
        });
        BOOST_TEST(other.hear() == 'p', limit);
        owner.release();
        BOOST_TEST(other.hear() == 'o', limit);
    }
}

BOOST_AUTO_TEST_SUITE_END()
