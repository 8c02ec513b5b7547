// A record that is removed by order: which one it is, and what its owner and everybody else may be doing meanwhile.
#include <boost/test/unit_test.hpp>

#include "fslock/error.hpp"
#include "support/led_process.hpp"

namespace {

using namespace support;
using core::standing;

fslock::options without_witness() {
    fslock::options o;
    o.witness = fslock::witness::off;
    return o;
}

/// An owner, and somebody who breaks its lock.
struct broken_lock {
    explicit broken_lock(const fslock::options& o = {}, os::fs_class filesystem = os::fs_class::local,
                         os::witness_kind kernel = os::witness_kind::ofd) {
        k.witness = kernel;
        k.records_change = true;
        owner = std::make_unique<led_process>(k, o, filesystem, 100);
        breaker = std::make_unique<led_process>(k, o, filesystem, 101);
        owner->acquire();
    }
    void begin() { breaker->break_lock(owner->held->rec().writer_epoch); }
    [[nodiscard]] bool record_is_of(int pid) const {
        return text_at(k, lock_path).find(std::to_string(pid) + '-') != std::string::npos;
    }

    small_world k;
    std::unique_ptr<led_process> owner;
    std::unique_ptr<led_process> breaker;
};

bool is_busy(std::error_code e) { return e == std::errc::device_or_resource_busy; }

}  // namespace

BOOST_AUTO_TEST_SUITE(breaking)

BOOST_AUTO_TEST_CASE(the_record_of_a_living_owner_is_gone_and_the_owner_finds_out) {
    for (const auto filesystem : {os::fs_class::local, os::fs_class::shared}) {
        broken_lock b({}, filesystem);
        b.begin();
        b.breaker->go_on();
        BOOST_TEST(b.breaker->broke.removed);
        BOOST_TEST(!b.breaker->broke.error);
        BOOST_TEST(b.k.names.empty());
        if (filesystem == os::fs_class::local) BOOST_TEST((b.owner->verify() == standing::lost));
        b.owner->release();
        b.owner->go_on();
        BOOST_TEST((b.owner->released == fslock::errc::lost));
    }
}

BOOST_AUTO_TEST_CASE(what_was_written_over_a_record_is_removed_however_many_looks_fail) {
    broken_lock b({}, os::fs_class::shared);
    b.begin();
    BOOST_TEST_REQUIRE(b.breaker->comes_to("write"));
    BOOST_TEST_REQUIRE(b.breaker->comes_to("sleep"));  // the owner is displaced
    BOOST_TEST_REQUIRE(!b.record_is_of(100));
    BOOST_TEST_REQUIRE(b.breaker->comes_to("open /d/x"));
    b.breaker->process.step(sim_reply::io_error);
    b.breaker->process.patience = 10;
    b.breaker->go_on();
    BOOST_TEST(b.breaker->broke.removed);
    BOOST_TEST(b.k.names.empty());
}

BOOST_AUTO_TEST_CASE(an_acquisition_that_takes_its_record_off_again_is_not_interrupted) {
    fslock::options o;
    o.durability = fslock::durability::full;
    small_world k;
    k.directory_sync = std::make_error_code(std::errc::io_error);
    led_process a(k, o);
    a.contend();
    BOOST_TEST_REQUIRE(a.comes_to("unlink " + lock_path));  // between its look and the removal
    led_process breaker(k, o, os::fs_class::local, 101);
    breaker.break_lock(a.contender.mine.rec.writer_epoch);
    breaker.go_on();
    BOOST_TEST(!breaker.broke.removed);
    BOOST_TEST(is_busy(breaker.broke.error));
    a.go_on();
    BOOST_TEST(!a.owns());
    BOOST_TEST(k.names.empty());
}

BOOST_AUTO_TEST_CASE(what_is_not_of_that_epoch_is_left_alone) {
    const std::string contents[] = {core::format(guarded_record_of(living)), core::format(record_of(dead)), ""};
    for (const auto& content : contents) {
        small_world k;
        k.put(lock_path, content, 3600 * one_second);
        led_process a(k);
        a.break_lock("50-1");
        a.go_on();
        BOOST_TEST(!a.broke.removed);
        BOOST_TEST(!a.broke.error);
        BOOST_TEST(text_at(k, lock_path) == content);
        BOOST_TEST(k.names.size() == 1U);
    }
}

BOOST_AUTO_TEST_CASE(nothing_at_the_path_is_no_error_and_a_file_of_somebody_is_one) {
    small_world k;
    led_process a(k);
    a.break_lock("50-1");
    a.go_on();
    BOOST_TEST((!a.broke.removed && !a.broke.error));
    k.put(lock_path, "a letter", 0);
    a.break_lock("50-1");
    a.go_on();
    BOOST_TEST((a.broke.error == fslock::errc::not_a_lock_file));
    BOOST_TEST(text_at(k, lock_path) == "a letter");
}

BOOST_AUTO_TEST_CASE(a_dead_owners_record_goes_as_in_a_reclaim) {
    small_world k;
    k.put(lock_path, core::format(guarded_record_of(dead)), 3600 * one_second);
    led_process a(k);
    a.break_lock(guarded_record_of(dead).writer_epoch);
    BOOST_TEST(a.comes_to("link " + token_path));
    a.go_on();
    BOOST_TEST(a.broke.removed);
    BOOST_TEST(k.names.empty());
}

BOOST_AUTO_TEST_CASE(an_owner_that_gives_back_is_not_interrupted) {
    broken_lock b;
    b.owner->release();
    BOOST_TEST_REQUIRE(b.owner->comes_to("unlink /d/x"));
    b.begin();
    b.breaker->go_on();
    BOOST_TEST(is_busy(b.breaker->broke.error));
    BOOST_TEST(b.record_is_of(100));
    b.owner->go_on();
    BOOST_TEST(!b.owner->released);
    BOOST_TEST(b.k.names.empty());
}

BOOST_AUTO_TEST_CASE(an_owner_does_not_give_back_while_somebody_removes_its_record) {
    broken_lock b;
    b.begin();
    BOOST_TEST_REQUIRE(b.breaker->comes_to("unlink /d/x"));
    b.owner->release();
    b.owner->go_on();
    BOOST_TEST(is_busy(b.owner->released));
    BOOST_TEST(b.record_is_of(100));
    b.breaker->go_on();
    BOOST_TEST(b.breaker->broke.removed);
    BOOST_TEST(b.k.names.empty());
}

BOOST_AUTO_TEST_CASE(what_took_the_place_of_a_record_meanwhile_is_left_alone) {
    for (const auto filesystem : {os::fs_class::local, os::fs_class::shared}) {
        broken_lock b({}, filesystem);
        b.begin();
        BOOST_TEST_REQUIRE(b.breaker->comes_to("link " + token_path));
        const auto others = core::format(record_of(living));
        replace(b.k, lock_path, others);
        b.breaker->go_on();
        BOOST_TEST(!b.breaker->broke.removed);
        BOOST_TEST(text_at(b.k, lock_path) == others);
    }
}

BOOST_AUTO_TEST_CASE(a_token_of_somebody_who_lives_is_an_error_that_says_whose) {
    broken_lock b;
    b.k.put(token_path, core::format(record_of(living)), 0);
    b.begin();
    b.breaker->go_on();
    BOOST_TEST(is_busy(b.breaker->broke.error));
    BOOST_TEST(b.breaker->broke.token_holder.pid == living);
    BOOST_TEST(b.record_is_of(100));
    BOOST_TEST((b.owner->verify() == standing::ours));
}

BOOST_AUTO_TEST_CASE(an_owner_without_witness_is_told_by_its_record_before_it_goes) {
    for (const auto filesystem : {os::fs_class::local, os::fs_class::shared}) {
        broken_lock b(without_witness(), filesystem);
        b.begin();
        BOOST_TEST_REQUIRE(b.breaker->comes_to("write"));
        b.breaker->process.step();
        BOOST_TEST_REQUIRE(b.breaker->comes_to("sleep"));
        BOOST_TEST(b.record_is_of(101));
        BOOST_TEST((b.owner->verify() == standing::lost));
        b.owner->release();
        b.owner->go_on();
        BOOST_TEST((b.owner->released == fslock::errc::lost));
        BOOST_TEST(b.record_is_of(101));
        b.breaker->go_on();
        BOOST_TEST(b.breaker->broke.removed);
        BOOST_TEST(b.k.names.empty());
    }
}

BOOST_AUTO_TEST_CASE(a_beat_into_the_stand_in_makes_the_breaker_begin_again) {
    broken_lock b(without_witness());
    b.breaker->process.patience = 8;
    b.owner->beat();
    BOOST_TEST_REQUIRE(b.owner->comes_to("write"));
    b.begin();
    BOOST_TEST_REQUIRE(b.breaker->comes_to("sleep"));
    BOOST_TEST(b.record_is_of(101));
    b.owner->process.step();
    BOOST_TEST_REQUIRE(b.record_is_of(100));
    BOOST_TEST(b.breaker->comes_to("unlink /d/x"));
    BOOST_TEST(b.record_is_of(101));
    b.breaker->go_on();
    BOOST_TEST(b.breaker->broke.removed);
}

BOOST_AUTO_TEST_CASE(a_breaker_that_dies_half_way_blocks_nobody) {
    broken_lock b(without_witness());
    b.begin();
    BOOST_TEST_REQUIRE(b.breaker->comes_to("write"));
    b.breaker->process.step();
    BOOST_TEST_REQUIRE(b.breaker->comes_to("sleep"));
    b.breaker->process.die();
    led_process next(b.k, without_witness(), os::fs_class::local, 102);
    next.acquire();
    BOOST_TEST((b.owner->verify() == standing::lost));
}

BOOST_AUTO_TEST_CASE(with_a_flock_an_owner_that_gives_back_minds_the_token) {
    for (const bool in_time : {true, false}) {
        broken_lock b({}, os::fs_class::local, os::witness_kind::flock);
        b.begin();
        BOOST_TEST_REQUIRE(b.breaker->comes_to("sleep"));  // the token settles
        b.owner->process.patience = in_time ? 3 : 0;
        b.owner->release();
        BOOST_TEST_REQUIRE(b.owner->comes_to("sleep") == in_time);
        BOOST_TEST(b.record_is_of(100));
        b.breaker->go_on();
        BOOST_TEST(b.breaker->broke.removed);
        b.owner->go_on();
        BOOST_TEST((in_time ? b.owner->released == fslock::errc::lost : is_busy(b.owner->released)));
        BOOST_TEST(b.k.names.empty());
    }
}

BOOST_AUTO_TEST_CASE(with_a_flock_no_other_token_keeps_an_owner_from_giving_back) {
    for (const auto& token : {core::format(record_of(living)), std::string()}) {
        broken_lock b({}, os::fs_class::local, os::witness_kind::flock);
        b.k.put(token_path, token, 0);
        b.owner->release();
        b.owner->go_on();
        BOOST_TEST(!b.owner->released);
        BOOST_TEST(!b.k.names.contains(lock_path));
        BOOST_TEST(text_at(b.k, token_path) == token);
    }
}

BOOST_AUTO_TEST_SUITE_END()
