// Hosts that share a filesystem, where no kernel lock proves anything: silence, the token and the settle time do.
//
// Time passes here, and nobody is awake for as long as it takes to settle a token (docs/protocol.md, "What remains
// possible"). Whoever sleeps, an owner between its beats for instance, may be stopped for as long as you like.
#include <boost/test/unit_test.hpp>

#include "schedules.hpp"

namespace {

using namespace support;
using schedules::explore;
using schedules::scenario;

constexpr std::int64_t long_ago = 7200 * one_second;

void share(site& s) {
    s.disk.kind = os::fs_class::shared;
    s.add_host("other");
    s.add_host("third");
}

void put_dead(site& s, const std::string& path, std::int64_t age_ns = long_ago) {
    s.disk.put(path, record_text(50, s.hosts[2], writer::ours_without_witness), age_ns);
}

/// One on each host, in the same rhythm, which looks seldom.
template <int Contenders>
void contend(site& s, int patience = 4) {
    for (int i = 0; i < Contenders; ++i) {
        auto& a = s.add(i, 100 + i);
        a.opts.poll_interval = core::milliseconds(60'000);
        a.process.patience = patience;
        a.start(takes_turns);
    }
}

template <int Contenders>
void free_lock(site& s) {
    share(s);
    contend<Contenders>(s);
}

template <int Contenders>
void dead_owner(site& s) {
    share(s);
    put_dead(s, lock_path);
    contend<Contenders>(s);
}

template <int Contenders>
void dead_owner_and_dead_token(site& s) {
    share(s);
    put_dead(s, lock_path);
    put_dead(s, token_path);
    contend<Contenders>(s, 12);  // a token that was moved aside by mistake, and came back, is a leftover for a while
}

void dead_owner_in_place(site& s) {
    s.disk.unnamed_files = s.disk.hard_links = false;
    s.disk.records_change = true;
    dead_owner<2>(s);
}

/// Silent, but not for long enough yet.
void silent_owner(site& s) {
    share(s);
    put_dead(s, lock_path, 20 * one_second);
    contend<2>(s, 6);
}

/// Beats for longer than anybody waits.
void beating_owner(site& s) {
    share(s);
    s.nobody_may_win = true;
    put_dead(s, lock_path, 4 * one_second);
    auto& owner = s.add(2, 60);
    owner.beats = 60;
    owner.start(beats_from_elsewhere);
    contend<1>(s, 3);
}

/// Owns, and may be stopped in a nap. Gives back what it has, with or without a look at it before.
template <bool Looks>
void owner_that_stops(site& s) {
    share(s);
    s.disk.records_change = true;
    auto& owner = s.add(2, 90);
    owner.beats = 1;
    owner.looks = Looks;
    owner.start(takes_turns);
    while (!owner.process.wakes_at()) owner.process.step();
    auto& other = s.add(0, 100);
    other.opts.poll_interval = core::milliseconds(60'000);
    other.process.patience = 8;
    other.beats = 3;  // enough to be sure that its record is gone
    other.start(takes_turns);
}

/// The owner's clock was ahead of all others. The contenders, in containers, have one and the same pid.
void dead_owner_from_the_future(site& s) {
    share(s);
    auto text = record_text(50, s.hosts[2], writer::ours_without_witness);
    text.replace(text.find("50-16"), 5, "50-18");
    s.disk.put(lock_path, text, long_ago);
    for (int i = 0; i < 2; ++i) {
        s.hosts[static_cast<std::size_t>(i)].skew_ns = i + 1;
        auto& a = s.add(i, 7);
        a.opts.poll_interval = core::milliseconds(60'000);
        a.beats = 1;
        a.start(takes_turns);
    }
}

const scenario scenarios[] = {
    {"shared, free", free_lock<2>, 1, 0, 1, -1, true},
    {"shared, a dead owner", dead_owner<2>, 1, 0, 0, -1, true},
    {"shared, a dead owner, lost replies", dead_owner<2>, 1, 0, 1, 4, true},
    {"shared, free, lost replies and looks that fail, one stands still", free_lock<2>, 0, 1, 2, 3, true, true},
    {"shared, a dead owner, lost replies and looks that fail", dead_owner<2>, 1, 0, 2, 2, true, true},
    {"shared, a dead owner and a dead token", dead_owner_and_dead_token<2>, 1, 0, 0, 3, true},
    {"shared, three, a dead owner", dead_owner<3>, 1, 0, 0, 3, true},
    {"shared, created in place, a dead owner", dead_owner_in_place, 1, 0, 0, 2, true},
    {"shared, a silent owner", silent_owner, 1, 0, 0, -1, true},
    {"shared, a dead owner from the future", dead_owner_from_the_future, 1, 0, 0, 3, true},
    {"shared, an owner that is stopped and gives back", owner_that_stops<false>, 0, 1, 0, 3, true},
};

const scenario beating = {"shared, an owner elsewhere that beats", beating_owner, 0, 0, 0, -1, true};

const scenario resumed = {"shared, an owner that is stopped and beats again", owner_that_stops<true>, 0, 1, 0, 3, true};

}  // namespace

BOOST_AUTO_TEST_CASE(hosts_never_have_two_owners_while_nobody_is_held_up_for_the_settle_time) {
    for (const auto& s : scenarios) {
        const auto t = explore(s);
        BOOST_TEST(t.won > t.ends / 4, s.name);
    }
}

BOOST_AUTO_TEST_CASE(an_owner_elsewhere_that_beats_is_never_displaced) {
    BOOST_TEST(explore(beating).ends > 0);
}

// A beat that comes while the record is being removed must not make its owner think that nobody has judged it.
BOOST_AUTO_TEST_CASE(an_owner_that_beats_again_after_a_long_stop_leaves_its_successor_alone) {
    BOOST_TEST(explore(resumed).ends > 0);
}
