// Links, looks and removals on a shared filesystem whose outcome is not known at once.
#include <boost/test/unit_test.hpp>

#include "support/led_process.hpp"

using namespace fslock;
using namespace support;
using namespace std::chrono_literals;

namespace {

constexpr std::int64_t long_silence = 100 * one_second;

/// A claim that was made, nobody knows by whom: the link's reply was lost, and the look after it failed.
struct doubted_claim {
    explicit doubted_claim(std::optional<std::chrono::seconds> limit = std::nullopt) : a(k, {}, os::fs_class::shared) {
        if (limit) a.contender.deadline = a.process.now() + *limit;
        a.contend();
        BOOST_TEST_REQUIRE(a.comes_to("link /d/x"));
        a.process.step(sim_reply::io_error);
        BOOST_TEST_REQUIRE(a.process.next() == "open /d/x");
        a.process.step(sim_reply::io_error);
        BOOST_TEST_REQUIRE(a.comes_to("sleep"));
        BOOST_TEST_REQUIRE(k.names.contains(lock_path));
    }

    small_world k;
    led_process a;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(steps)

BOOST_AUTO_TEST_CASE(what_was_in_doubt_for_long_is_given_back_under_the_token) {
    for (const auto passed : {one_second, long_silence}) {
        doubted_claim d;
        d.k.now_ns += passed;
        d.a.go_on();
        BOOST_TEST_REQUIRE(d.a.owns());
        d.a.release();
        BOOST_TEST(d.a.comes_to("link " + token_path) == (passed == long_silence));
        d.a.go_on();
        BOOST_TEST(d.k.names.empty());
    }
}

BOOST_AUTO_TEST_CASE(what_was_in_doubt_for_long_is_not_removed_but_damaged_when_nobody_wants_it_any_more) {
    for (const auto passed : {5 * one_second, long_silence}) {
        doubted_claim d(5s);
        d.k.now_ns += passed;
        d.a.process.step();
        BOOST_TEST_REQUIRE(d.a.process.next() == "open /d/x");
        d.a.process.step(sim_reply::io_error);  // still nobody knows
        BOOST_TEST(d.a.comes_to("unlink /d/x") == (passed != long_silence));
        d.a.go_on();
        BOOST_TEST(!d.a.owns());
        BOOST_TEST(d.k.names.contains(lock_path) == (passed == long_silence));
        BOOST_TEST(text_at(d.k, lock_path).find_first_not_of('\0') == std::string::npos);
    }
}

BOOST_AUTO_TEST_CASE(an_answer_that_took_its_time_is_a_long_doubt) {
    small_world k;
    led_process a(k, {}, os::fs_class::shared);
    a.contend();
    BOOST_TEST_REQUIRE(a.comes_to("link /d/x"));
    k.now_ns += long_silence;
    a.process.step(sim_reply::io_error);
    // Before the look: who has judged it dead compares the times.
    BOOST_TEST_REQUIRE(a.process.next() == "open /d/x");
    BOOST_TEST(k.inodes.at(k.names.at(lock_path)).modified_ns == k.clock_ns());
    a.go_on();
    BOOST_TEST_REQUIRE(a.owns());
    a.release();
    BOOST_TEST(a.comes_to("link " + token_path));
    a.go_on();
    BOOST_TEST(k.names.empty());
}

BOOST_AUTO_TEST_CASE(what_landed_after_another_owner_has_a_later_epoch) {
    doubted_claim d;
    const int ours = d.k.names.at(lock_path);
    d.k.names["/d/aside"] = ours;  // as if the link had not happened yet
    replace(d.k, lock_path, core::format(ahead_of_us(record_of(living))));
    d.a.process.step();
    BOOST_TEST_REQUIRE(d.a.process.next() == "open /d/x");
    d.a.process.step(sim_reply::io_error);  // still in doubt, and then it reads the other one
    BOOST_TEST_REQUIRE(d.a.comes_to("sleep"));
    d.k.names[lock_path] = ours;
    d.k.names.erase("/d/aside");
    d.a.go_on();
    BOOST_TEST_REQUIRE(d.a.owns());
    BOOST_TEST(core::epoch_stamp(d.a.held->rec().writer_epoch) > far_ahead);
    BOOST_TEST(core::parse(text_at(d.k, lock_path)).value.writer_epoch == d.a.held->rec().writer_epoch);
}

BOOST_AUTO_TEST_CASE(what_may_come_back_when_nobody_wants_it_any_more_is_damaged) {
    doubted_claim d(5s);
    const int inode = d.k.names.at(lock_path);
    d.k.names["/d/aside"] = inode;  // by who judged another record, and puts it back in a moment
    d.k.names.erase(lock_path);
    d.k.put(lock_path, core::format(record_of(living)), 0);
    d.k.names.erase(lock_path);
    d.k.now_ns += 5 * one_second;
    d.a.process.step();
    BOOST_TEST_REQUIRE(d.a.comes_to("link /d/x"));
    d.k.put(lock_path, core::format(record_of(living)), 0);
    d.a.process.step();
    BOOST_TEST_REQUIRE(d.a.process.next() == "open /d/x");
    d.a.process.step(sim_reply::io_error);
    d.a.go_on();
    BOOST_TEST(!d.a.owns());
    BOOST_TEST(text_at(d.k, "/d/aside").find_first_not_of('\0') == std::string::npos);
    BOOST_TEST(text_at(d.k, lock_path) == core::format(record_of(living)));
}

BOOST_AUTO_TEST_CASE(an_epoch_that_was_in_doubt_is_above_that_of_an_owner_who_came_and_went) {
    small_world k;
    k.put(lock_path, core::format(record_of(living)), 0);
    led_process a(k, {}, os::fs_class::shared);
    a.contend();
    BOOST_TEST_REQUIRE(a.comes_to("link /d/x"));
    a.process.step();
    BOOST_TEST_REQUIRE(a.process.next() == "open /d/x");
    a.process.step(sim_reply::io_error);
    replace(k, lock_path, core::format(ahead_of_us(record_of(living))));
    BOOST_TEST_REQUIRE(a.comes_to("sleep"));
    k.names.erase(lock_path);
    a.go_on();
    BOOST_TEST_REQUIRE(a.owns());
    BOOST_TEST(core::epoch_stamp(a.held->rec().writer_epoch) > far_ahead);
}

BOOST_AUTO_TEST_CASE(a_rename_whose_reply_was_lost_is_looked_at) {
    small_world k;
    k.hard_links = false;
    k.exclusive_rename = true;
    led_process a(k, {}, os::fs_class::shared);
    a.where.where->method = core::publishing::renamed;
    a.contend();
    BOOST_TEST_REQUIRE(a.comes_to("rename /d/.x.tmp."));
    a.process.step(sim_reply::retried);
    a.go_on();
    BOOST_TEST_REQUIRE(a.owns());
    BOOST_TEST(a.held->rec().writer_epoch == core::parse(text_at(k, lock_path)).value.writer_epoch);
    BOOST_TEST(k.names.size() == 1U);
}

BOOST_AUTO_TEST_CASE(a_token_that_is_put_back_by_a_lost_reply_ends_no_wait) {
    small_world k;
    leave_dead_owner_and_token(k);
    led_process a(k);
    a.contend();
    BOOST_TEST_REQUIRE(a.comes_to("rename " + token_path));
    replace(k, token_path, core::format(record_of(living)));
    BOOST_TEST_REQUIRE(a.comes_to("link " + token_path));
    a.process.step();
    BOOST_TEST_REQUIRE(a.process.next().starts_with("unlink /d/.x.tmp."));
    a.process.step(sim_reply::io_error);
    BOOST_TEST(a.comes_to("sleep"));
}

BOOST_AUTO_TEST_CASE(a_file_that_had_a_name_and_lost_it_is_prepared_anew) {
    small_world k;
    leave_dead_owner_and_token(k);
    led_process a(k);
    a.acquire();
    BOOST_TEST((a.where.where->method.load() == core::publishing::unnamed));
    BOOST_TEST(a.where.where->links_work.load());
}

BOOST_AUTO_TEST_CASE(a_shared_record_that_comes_back_is_given_back) {
    small_world k;
    led_process a(k, {}, os::fs_class::shared);
    a.acquire();
    a.release();
    BOOST_TEST_REQUIRE(a.process.next() == "open /d/x");
    const int inode = k.names.at(lock_path);
    k.names["/d/aside"] = inode;  // by who judged it dead, and compares it now
    k.names.erase(lock_path);
    BOOST_TEST_REQUIRE(a.comes_to("sleep"));
    k.names[lock_path] = inode;
    k.names.erase("/d/aside");
    a.go_on();
    BOOST_TEST(!a.released);
    BOOST_TEST(k.names.empty());
}

BOOST_AUTO_TEST_CASE(a_record_that_was_abandoned_is_taken_over_by_its_own_process) {
    for (const bool abandoned : {false, true}) {
        small_world k;
        k.clock_runs = true;
        led_process a(k, {}, os::fs_class::shared);
        a.process.patience = 1000;
        a.acquire();
        const auto before = std::move(a.held);
        if (abandoned) before->abandon(a.process);
        a.contender.deadline = a.process.now() + 60s;
        a.contend();
        a.go_on();
        BOOST_TEST(a.owns() == abandoned);
    }
}

BOOST_AUTO_TEST_CASE(a_release_under_a_token_that_was_lost_takes_another_and_forgets_the_first) {
    small_world k;
    k.witness = os::witness_kind::flock;
    led_process a(k);
    a.acquire();
    auto breaking = record_of(dead);
    breaking.label = std::string(core::breaking_label);
    k.put(token_path, core::format(breaking), 3600 * one_second);
    a.release();
    BOOST_TEST_REQUIRE(a.comes_to("sleep"));  // it has taken a dead token over
    const auto first = core::epoch_stamp(core::parse(text_at(k, token_path)).value.writer_epoch);
    BOOST_TEST_REQUIRE(a.process.knows_epoch(first));
    replace(k, token_path, core::format(record_of(living)));
    a.process.step();
    BOOST_TEST_REQUIRE(a.comes_to("sleep"));
    k.names.erase(token_path);
    a.process.patience = 10;
    a.go_on();
    BOOST_TEST(!a.process.knows_epoch(first));
    BOOST_TEST(!a.released);
    BOOST_TEST(k.names.empty());
}

BOOST_AUTO_TEST_SUITE_END()
