// Which epoch an attempt has, and which record is taken for our own.
#include <boost/test/unit_test.hpp>

#include "support/led_process.hpp"

using namespace fslock;
using namespace support;

BOOST_AUTO_TEST_SUITE(steps)

BOOST_AUTO_TEST_CASE(an_epoch_is_above_that_of_the_owner_before) {
    small_world k;
    k.put(lock_path, core::format(ahead_of_us(guarded_record_of(dead))), 3600 * one_second);
    led_process a(k);
    a.acquire();
    BOOST_TEST(core::epoch_stamp(a.held->rec().writer_epoch) > far_ahead);
}

BOOST_AUTO_TEST_CASE(a_record_of_another_host_is_not_ours_whatever_its_epoch) {
    small_world k;
    led_process a(k, {}, os::fs_class::shared);
    a.contend();
    BOOST_TEST_REQUIRE(a.comes_to("link /d/x"));
    auto others = a.contender.mine.rec;
    others.boot_id = std::string("another boot");
    k.put(lock_path, core::format(others), 0);
    BOOST_TEST(a.comes_to("sleep"));
    BOOST_TEST(!a.owns());
    BOOST_TEST(text_at(k, lock_path) == core::format(others));
}

BOOST_AUTO_TEST_CASE(a_link_that_was_made_unheard_and_moved_aside_is_made_once_more) {
    small_world k;
    led_process a(k, {}, os::fs_class::shared);
    a.contend();
    BOOST_TEST_REQUIRE(a.comes_to("link /d/x"));
    a.process.step(sim_reply::io_error);
    BOOST_TEST_REQUIRE(k.names.contains(lock_path));
    k.names.erase(lock_path);  // by who judged the file before it, and compares it now
    a.go_on();
    BOOST_TEST(a.owns());
}

BOOST_AUTO_TEST_CASE(an_epoch_is_above_that_of_a_living_owner_that_gave_back) {
    small_world k;
    auto before = ahead_of_us(guarded_record_of(living));
    before.guard = os::witness_kind::none;
    k.put(lock_path, core::format(before), 0);
    led_process a(k);
    a.contend();
    BOOST_TEST_REQUIRE(a.comes_to("sleep"));
    k.names.erase(lock_path);
    a.go_on();
    BOOST_TEST_REQUIRE(a.owns());
    BOOST_TEST(core::epoch_stamp(a.held->rec().writer_epoch) > far_ahead);
}

BOOST_AUTO_TEST_CASE(an_epoch_is_above_that_of_an_owner_who_came_and_went_during_the_wait) {
    for (const auto durability : {durability::relaxed, durability::full}) {
        options o;
        o.durability = durability;
        small_world k;
        led_process b(k, {}, os::fs_class::local, 101);
        led_process a(k, o);
        b.acquire();
        a.contend();
        BOOST_TEST_REQUIRE(a.comes_to("sleep"));
        b.release();
        b.go_on();
        k.now_ns += one_second;
        b.acquire();  // asked later than the one who waits
        const auto between = core::epoch_stamp(b.held->rec().writer_epoch);
        b.release();
        b.go_on();
        k.now_ns += 1000;
        a.go_on();
        BOOST_TEST_REQUIRE(a.owns());
        BOOST_TEST(core::epoch_stamp(a.held->rec().writer_epoch) > between);
        BOOST_TEST(a.process.knows_epoch(core::epoch_stamp(a.held->rec().writer_epoch)));
    }
}

BOOST_AUTO_TEST_SUITE_END()
