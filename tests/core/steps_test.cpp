// Single steps of the protocol that others can come between: what they may find, and what must not happen then.
#include <boost/test/unit_test.hpp>

#include "core/read_record.hpp"
#include "support/led_process.hpp"

namespace {

using namespace std::chrono_literals;
using namespace fslock;
using namespace support;
using core::standing;
using os::lock_byte;

options without_witness() {
    options o;
    o.witness = witness::off;
    return o;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(steps)

BOOST_AUTO_TEST_CASE(a_token_that_is_not_ours_is_not_removed) {
    small_world k;
    k.put(lock_path, core::format(guarded_record_of(dead)), 3600 * one_second);
    led_process a(k);
    a.contend();
    BOOST_TEST_REQUIRE(a.comes_to("unlink /d/x"));
    const auto others = core::format(record_of(living));
    replace(k, token_path, others);
    a.go_on();
    BOOST_TEST(text_at(k, token_path) == others);
    BOOST_TEST(a.owns());
}

BOOST_AUTO_TEST_CASE(a_token_is_ours_only_after_it_settled) {
    small_world k;
    const auto dead_owner = core::format(guarded_record_of(dead));
    k.put(lock_path, dead_owner, 3600 * one_second);
    k.put(token_path, core::format(guarded_record_of(dead)), 3600 * one_second);
    led_process a(k);
    a.contend();
    BOOST_TEST_REQUIRE(a.comes_to("sleep"));
    BOOST_TEST(text_at(k, lock_path) == dead_owner);
    replace(k, token_path, core::format(record_of(living)));  // by who judged the same dead token, a moment later
    a.go_on();
    BOOST_TEST(text_at(k, lock_path) == dead_owner);
    BOOST_TEST(!a.owns());
}

BOOST_AUTO_TEST_CASE(a_token_in_place_of_the_dead_one_is_not_moved) {
    small_world k;
    leave_dead_owner_and_token(k);
    led_process a(k);
    a.contend();
    BOOST_TEST_REQUIRE(a.comes_to("open " + token_path));
    a.process.step();
    BOOST_TEST_REQUIRE(a.comes_to("open " + token_path));  // has judged, and wants its removal lock
    const auto others = core::format(record_of(living));
    replace(k, token_path, others);
    BOOST_TEST(!a.comes_to("rename " + token_path));
    BOOST_TEST(text_at(k, token_path) == others);
}

BOOST_AUTO_TEST_CASE(the_removal_lock_is_that_of_the_judged_token) {
    small_world k;
    k.put(lock_path, core::format(guarded_record_of(dead)), 3600 * one_second);
    const int judged = k.put(token_path, core::format(guarded_record_of(dead)), 3600 * one_second);
    led_process a(k);
    a.contend();
    BOOST_TEST_REQUIRE(a.comes_to("open " + token_path));
    a.process.step();
    BOOST_TEST_REQUIRE(a.comes_to("open " + token_path));
    const int other = replace(k, token_path, core::format(record_of(living)));  // moved by mistake, and put back
    a.process.step();
    k.names["/d/elsewhere"] = other;
    k.names[token_path] = judged;
    BOOST_TEST(a.comes_to("sleep"));  // blocked, for now
    BOOST_TEST(text_at(k, token_path) == core::format(guarded_record_of(dead)));
}

BOOST_AUTO_TEST_CASE(a_token_that_was_moved_by_mistake_is_put_back) {
    small_world k;
    leave_dead_owner_and_token(k);
    led_process a(k);
    a.contend();
    BOOST_TEST_REQUIRE(a.comes_to("rename " + token_path));
    const auto others = core::format(record_of(living));
    replace(k, token_path, others);
    a.go_on();
    BOOST_TEST(text_at(k, token_path) == others);
    BOOST_TEST(k.names.size() == 2U);
    BOOST_TEST(!a.owns());
}

BOOST_AUTO_TEST_CASE(a_beat_before_the_removal_saves_a_shared_record) {
    small_world k;
    const int inode = k.put(lock_path, core::format(record_of(dead)), 3600 * one_second);
    led_process a(k, {}, os::fs_class::shared);
    a.contend();
    BOOST_TEST_REQUIRE(a.comes_to("sleep"));  // the token settles
    BOOST_TEST_REQUIRE(k.names.contains(token_path));
    auto beaten = record_of(dead);
    beaten.heartbeat_at_ms += 5000;
    k.rewrite(inode, core::format(beaten));
    k.inodes[inode].modified_ns = k.clock_ns();
    a.go_on();
    BOOST_TEST(text_at(k, lock_path) == core::format(beaten));
    BOOST_TEST(!a.owns());
}

BOOST_AUTO_TEST_CASE(a_beat_without_witness_writes_to_its_own_record_only) {
    small_world k;
    led_process a(k, without_witness());
    a.acquire();
    const auto others = core::format(record_of(living));
    replace(k, lock_path, others);
    a.beat();
    a.go_on();
    BOOST_TEST((a.found.now == standing::lost));
    BOOST_TEST(text_at(k, lock_path) == others);
}

BOOST_AUTO_TEST_CASE(an_adopted_copy_is_locked) {
    small_world k;
    led_process a(k);
    a.acquire();
    const int copy = replace(k, lock_path, text_at(k, lock_path));
    BOOST_TEST((a.verify() == standing::ours));
    const auto& locks = k.inodes.at(copy).locks;
    BOOST_TEST(locks.contains({0, lock_byte::witness}));
    BOOST_TEST(!locks.contains({0, lock_byte::removal}));
}

BOOST_AUTO_TEST_CASE(a_copy_that_is_being_removed_is_not_adopted) {
    small_world k;
    led_process a(k);
    a.acquire();
    const int copy = replace(k, lock_path, text_at(k, lock_path));
    const sim_process reclaimer(k, k.host, 101);
    k.inodes.at(copy).locks[{0, lock_byte::removal}] = {&reclaimer, 3};
    BOOST_TEST((a.verify() == standing::lost));
}

BOOST_AUTO_TEST_CASE(a_shared_record_is_lost_only_after_a_second_look) {
    small_world k;
    led_process a(k, {}, os::fs_class::shared);
    a.acquire();
    k.names.erase(lock_path);
    BOOST_TEST((a.verify() == standing::unsure));
    k.now_ns += 6 * one_second;  // more than one interval
    BOOST_TEST((a.verify() == standing::lost));
}

BOOST_AUTO_TEST_CASE(a_shared_record_is_fresh_when_it_appears_whatever_the_reply) {
    for (const auto reply : {sim_reply::truth, sim_reply::exists, sim_reply::io_error}) {
        small_world k;
        led_process a(k, {}, os::fs_class::shared);
        a.contend();
        BOOST_TEST_REQUIRE(a.comes_to("link /d/x"));
        k.now_ns += 60 * one_second;  // long in coming
        a.process.step(reply);
        a.go_on();
        BOOST_TEST_REQUIRE(a.owns());
        BOOST_TEST(k.inodes.at(k.names.at(lock_path)).modified_ns == k.clock_ns());
    }
}

BOOST_AUTO_TEST_CASE(a_late_release_without_witness_takes_the_token) {
    for (const bool blocked : {false, true}) {
        small_world k;
        led_process a(k, without_witness());
        a.acquire();
        k.now_ns += 3600 * one_second;
        if (blocked) k.put(token_path, core::format(record_of(living)), 0);
        a.release();
        BOOST_TEST(a.comes_to("link " + token_path));
        BOOST_TEST(k.names.contains(lock_path));
        a.go_on();
        BOOST_TEST(k.names.contains(lock_path) == blocked);
        BOOST_TEST(k.names.contains(token_path) == blocked);
        BOOST_TEST(static_cast<bool>(a.released) == blocked);
    }
}

BOOST_AUTO_TEST_CASE(who_has_to_yield_waits_first) {
    small_world k;
    k.clock_runs = true;
    led_process a(k);
    a.process.patience = 100;
    const auto yield_until = a.process.now() + 1ms;
    a.seen.yield_until = yield_until;
    a.contend();
    BOOST_TEST(a.comes_to("sleep"));
    BOOST_TEST(k.names.empty());
    a.go_on();
    BOOST_TEST(a.owns());
    BOOST_TEST((a.process.now() >= yield_until));
}

BOOST_AUTO_TEST_CASE(who_has_to_yield_waits_in_line_once_another_has_the_lock) {
    small_world k;
    led_process a(k);
    a.seen.yield_until = a.process.now() + 1h;
    a.contend();
    BOOST_TEST(a.comes_to("sleep"));
    k.put(lock_path, core::format(guarded_record_of(living)), 0);
    a.process.step();
    BOOST_TEST(a.comes_to("link"));
}

BOOST_AUTO_TEST_CASE(an_acquisition_leaves_no_temp) {
    fslock::options o;
    o.durability = fslock::durability::full;  // prepared under a name
    small_world k;
    led_process a(k, o);
    a.acquire();
    BOOST_TEST(k.names.size() == 1U);
}

BOOST_AUTO_TEST_CASE(a_wait_in_vain_leaves_no_temp) {
    small_world k;
    k.unnamed_files = false;
    k.put(lock_path, core::format(record_of(living)), 0);
    led_process a(k);
    a.contend();
    BOOST_TEST_REQUIRE(a.comes_to("sleep"));
    BOOST_TEST(k.names.size() == 2U);
    a.go_on();
    BOOST_TEST(!a.owns());
    BOOST_TEST(k.names.size() == 1U);
}

/// Somebody who creates its record in place and stands still before it locks it, and a reclaimer who takes the empty
/// file for a damaged one.
struct slow_creation {
    slow_creation() {
        k.unnamed_files = false;
        k.hard_links = false;
        k.records_change = true;
        creator.contend();
        BOOST_REQUIRE(creator.comes_to("create /d/x"));
        creator.process.step();
        k.now_ns += 60 * one_second;
        reclaimer.contend();
    }
    small_world k;
    led_process creator{k};
    led_process reclaimer{k, {}, os::fs_class::local, 101};
};

BOOST_AUTO_TEST_CASE(who_creates_in_place_minds_a_removal_at_work) {
    slow_creation s;
    BOOST_TEST_REQUIRE(s.reclaimer.comes_to("unlink /d/x"));
    s.creator.go_on();
    BOOST_TEST(!s.creator.owns());
    s.reclaimer.go_on();
    BOOST_TEST(s.reclaimer.owns());
}

BOOST_AUTO_TEST_CASE(who_creates_in_place_looks_whether_it_is_still_there) {
    slow_creation s;
    s.reclaimer.go_on();
    BOOST_TEST_REQUIRE(s.reclaimer.owns());
    s.creator.go_on();
    BOOST_TEST(!s.creator.owns());
}

BOOST_AUTO_TEST_CASE(a_record_that_was_completed_meanwhile_is_not_removed) {
    slow_creation s;
    BOOST_TEST_REQUIRE(s.reclaimer.comes_to("create /d/x"));
    s.reclaimer.process.step();
    BOOST_TEST_REQUIRE(s.reclaimer.comes_to("lock"));  // has judged, and wants the removal lock
    s.creator.go_on();
    BOOST_TEST_REQUIRE(s.creator.owns());
    s.reclaimer.go_on();
    BOOST_TEST(!s.reclaimer.owns());
    BOOST_TEST((s.creator.verify() == standing::ours));
}

BOOST_AUTO_TEST_CASE(who_removes_a_record_has_its_removal_lock) {
    small_world k;
    const int inode = k.put(lock_path, core::format(guarded_record_of(dead)), 3600 * one_second);
    auto& locks = k.inodes.at(inode).locks;
    led_process a(k);
    a.contend();
    BOOST_TEST_REQUIRE(a.comes_to("lock"));  // has judged
    const sim_process other(k, k.host, 101);
    locks[{0, lock_byte::removal}] = {&other, 3};
    a.process.step();
    locks.clear();  // the other one left it alone, and may begin again at any time
    BOOST_TEST_REQUIRE(a.comes_to("unlink /d/x"));
    BOOST_TEST_REQUIRE(locks.contains({0, lock_byte::removal}));
    BOOST_TEST(locks.at({0, lock_byte::removal}).first == &a.process);
}

BOOST_AUTO_TEST_CASE(tries_behind_a_token_become_rare) {
    small_world k;
    k.clock_runs = true;
    k.put(lock_path, core::format(guarded_record_of(dead)), 3600 * one_second);
    k.put(token_path, core::format(record_of(living)), 0);
    led_process a(k);
    a.process.patience = 6;
    a.contend();
    for (const auto pause : {250ms, 500ms, 1000ms, 2000ms, 4000ms, 5000ms}) {
        BOOST_TEST_REQUIRE(a.comes_to("sleep"));
        const auto before = a.process.now();
        a.process.step();
        BOOST_TEST((a.process.now() - before == pause));
    }
}

BOOST_AUTO_TEST_CASE(a_torn_read_is_read_again) {
    small_world k;
    k.records_change = true;
    auto fresh = record_of(living);
    fresh.heartbeat_at_ms = 1'611'111'111'111;
    const auto after = core::format(fresh);
    const auto before = core::format(record_of(living));
    const auto half = before.find("16000000000", before.find("heartbeat_at_ms")) + 6;
    const int inode = k.put(lock_path, after.substr(0, half) + before.substr(half), 0);
    led_process a(k);
    core::read_outcome seen;
    const auto look = [&]() -> core::task<int> {
        seen = co_await core::read_record_at(a.process, lock_path, os::fs_class::local);
        co_return 0;
    };
    auto run = look();
    run.resume();
    BOOST_TEST_REQUIRE(a.comes_to("read"));
    a.process.step();
    k.rewrite(inode, after);
    a.go_on();
    BOOST_TEST((seen.state == core::reading::seen));
    BOOST_TEST(seen.what.value.heartbeat_at_ms == fresh.heartbeat_at_ms);
}

BOOST_AUTO_TEST_SUITE_END()
