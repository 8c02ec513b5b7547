// Where many contend, who waits stays away first: what may happen meanwhile.
#include <boost/test/unit_test.hpp>

#include "support/led_process.hpp"

using namespace support;
using namespace std::chrono_literals;

namespace {

/// A lock that many had a moment ago, its owner, and one who has just begun to wait for it.
struct crowded_lock {
    explicit crowded_lock(std::optional<std::chrono::milliseconds> limit = std::nullopt) : owner(k, {}, os::fs_class::local, 101), a(k) {
        k.clock_runs = true;
        a.process.patience = 1000;
        for (int i = 0; i < many; ++i) a.seen.crowd.saw(record_of(1000 + i), a.process.now());
        a.seen.crowd.took(2, 2ms);
        if (limit) a.contender.deadline = a.process.now() + *limit;
        owner.acquire();
        began = a.process.now();
        a.contend();
        BOOST_TEST_REQUIRE(a.comes_to("sleep"));
    }

    static constexpr int many = 24;
    small_world k;
    led_process owner;
    led_process a;
    core::steady began;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(steps)

BOOST_AUTO_TEST_CASE(in_a_crowd_a_lock_that_is_free_is_taken_at_the_next_look) {
    crowded_lock c;
    c.owner.release();
    c.owner.go_on();
    c.a.go_on();
    BOOST_TEST_REQUIRE(c.a.owns());
    BOOST_TEST((c.a.process.now() - c.began < 4ms));
}

BOOST_AUTO_TEST_CASE(in_a_crowd_who_waits_looks_at_the_name_only_until_it_is_about_its_turn) {
    crowded_lock c;
    int looks = 0;
    while (c.a.process.next() == "sleep") {
        c.a.process.step();
        BOOST_TEST_REQUIRE(c.a.process.next() == "lstat /d/x");
        replace(c.k, lock_path, core::format(guarded_record_of(living)));  // others have their turns
        c.a.process.step();
        ++looks;
    }
    BOOST_TEST(c.a.process.next() == "link /d/x");
    BOOST_TEST((c.a.process.now() - c.began > 18ms));
    BOOST_TEST(looks > 3);
}

BOOST_AUTO_TEST_CASE(in_a_crowd_an_owner_who_keeps_the_lock_is_watched) {
    crowded_lock c;
    c.a.process.step();
    BOOST_TEST_REQUIRE(c.a.comes_to("link /d/x"));
    BOOST_TEST((c.a.process.now() - c.began < 4ms));
    BOOST_TEST(c.a.comes_to("sleep"));
    BOOST_TEST(!c.a.owns());
}

BOOST_AUTO_TEST_CASE(in_a_crowd_an_owner_who_dies_is_taken_over_within_two_looks) {
    crowded_lock c;
    c.owner.process.die();
    c.a.go_on();
    BOOST_TEST_REQUIRE(c.a.owns());
    BOOST_TEST((c.a.process.now() - c.began < 8ms));
}

BOOST_AUTO_TEST_CASE(in_a_crowd_a_limit_is_kept) {
    crowded_lock c(5ms);
    while (c.a.process.waits()) {
        if (c.a.process.next() == "lstat /d/x") replace(c.k, lock_path, core::format(guarded_record_of(living)));
        c.a.process.step();
    }
    BOOST_TEST(!c.a.owns());
    BOOST_TEST((c.a.process.now() - c.began == 5ms));
}

BOOST_AUTO_TEST_CASE(on_a_shared_filesystem_nobody_looks_more_often_for_a_crowd) {
    small_world k;
    k.put(lock_path, core::format(record_of(living)), 0);
    led_process a(k, {}, os::fs_class::shared);
    for (int i = 0; i < crowded_lock::many; ++i) a.seen.crowd.saw(record_of(1000 + i), a.process.now());
    a.seen.crowd.took(2, 2ms);
    a.contend();
    BOOST_TEST_REQUIRE(a.comes_to("sleep"));
    a.process.step();
    BOOST_TEST(a.process.next() != "lstat /d/x");
}

BOOST_AUTO_TEST_CASE(a_wait_stays_away_once) {
    crowded_lock c;
    c.a.process.step();
    BOOST_TEST_REQUIRE(c.a.comes_to("link /d/x"));
    BOOST_TEST_REQUIRE(c.a.comes_to("sleep"));
    c.a.process.step();
    BOOST_TEST(c.a.process.next() != "lstat /d/x");
}

BOOST_AUTO_TEST_SUITE_END()
