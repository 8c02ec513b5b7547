// Who does not play by all of the rules: peers that run the first implementation, people who remove a record by hand,
// and writers that stand still where the file they created is empty.
#include <boost/test/unit_test.hpp>

#include "schedules.hpp"

namespace {

using namespace support;
using schedules::explore;
using schedules::scenario;

constexpr std::int64_t long_ago = 7200 * one_second;

void put_dead(site& s, const std::string& path) {
    s.disk.put(path, record_text(51, s.hosts[0], writer::first_implementation), long_ago);
}

void one_of_each(site& s) {
    s.disk.records_change = true;  // its token is created empty
    s.add_started(0, 100, takes_turns);
    s.add_started(0, 101, as_the_first_implementation);
}

void free_lock(site& s) { one_of_each(s); }

void dead_owner(site& s) {
    put_dead(s, lock_path);
    one_of_each(s);
}

/// A token of the first implementation that was moved aside by mistake may come back when its owner has dropped it
/// already, without a second look. Then it stays for ten minutes, or until that process ends.
void dead_owner_and_dead_token(site& s) {
    s.tokens_may_stay = true;
    put_dead(s, lock_path);
    put_dead(s, token_path);
    one_of_each(s);
}

void beaten_by_the_first_implementation(site& s) {
    auto& owner = s.add(0, 101);
    owner.beats = 1;
    owner.start(as_the_first_implementation);
    s.add_started(0, 100, takes_turns);
}

/// Somebody removes the record of an owner. That owner is told; who owns next must not suffer.
void removed_by_hand(site& s) {
    auto& first = s.add(0, 100);
    first.cares = false;
    first.looks = false;
    first.start(takes_turns);
    while (first.won == 0) first.process.step();
    s.add_started(0, 102, removes_by_hand);
    while (s.actors.back()->process.waits()) s.actors.back()->process.step();
    first.doubtful = true;  // until it looks
    s.add_started(0, 101, takes_turns);
}

void created_in_place(site& s) {
    s.disk.unnamed_files = s.disk.hard_links = false;
    s.disk.records_change = true;
    for (int i = 0; i < 2; ++i) {
        auto& a = s.add(0, 100 + i);
        a.process.patience = 2;
        a.start(takes_turns);
    }
}

void created_in_place_after_a_dead_owner(site& s) {
    s.disk.put(lock_path, record_text(50, s.hosts[0], writer::ours), long_ago);
    created_in_place(s);
}

/// The first one created its file two hours ago, and has not locked it yet.
void created_in_place_by_a_writer_that_stood_still(site& s) {
    created_in_place(s);
    while (!s.disk.names.contains(lock_path)) s.actors[0]->process.step();
    s.disk.now_ns += long_ago;
}

const scenario mixed[] = {
    {"mixed, free", free_lock, 1, 0, 0, -1, true},
    {"mixed, a dead owner", dead_owner, 1, 0, 0, -1, true},
    {"mixed, a dead owner and a dead token", dead_owner_and_dead_token, 1, 0, 0, 4, true},
    {"mixed, an owner that beats by renaming", beaten_by_the_first_implementation, 1, 0, 0, -1, true},
};

const scenario by_hand = {"an owner whose record is removed by hand", removed_by_hand, 1, 0, 0, -1};

const scenario in_place[] = {
    {"created in place", created_in_place, 1, 0, 0, 3},
    {"created in place, the first stood still", created_in_place_by_a_writer_that_stood_still, 1, 0, 0, 2},
    {"created in place, a dead owner before", created_in_place_after_a_dead_owner, 1, 0, 0, 2},
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_peer_that_runs_the_first_implementation_and_one_of_ours_never_own_at_once) {
    for (const auto& s : mixed) BOOST_TEST(explore(s).won > 0, s.name);
}

BOOST_AUTO_TEST_CASE(an_owner_whose_record_was_removed_by_hand_leaves_the_next_one_alone) {
    BOOST_TEST(explore(by_hand).won > 0);
}

BOOST_AUTO_TEST_CASE(a_writer_that_stands_still_before_it_locks_what_it_created_does_not_own_with_another) {
    for (const auto& s : in_place) BOOST_TEST(explore(s).won > 0, s.name);
}
