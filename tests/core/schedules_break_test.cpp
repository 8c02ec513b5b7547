// Breaking a lock whose owner lives: its owner is told, and whoever owns next must not suffer from either of them.
#include <boost/test/unit_test.hpp>

#include "schedules.hpp"

namespace {

using namespace support;
using schedules::explore;
using schedules::scenario;

constexpr std::int64_t long_ago = 7200 * one_second;

/// Owns, and gives back without a look at it: at once or, where time passes, about when the breaker has waited for long
/// enough.
actor& add_owner(site& s, int host, fslock::witness how, core::milliseconds nap = {}) {
    auto& owner = s.add(host, 90);
    owner.opts.witness = how;
    owner.cares = false;
    owner.looks = false;
    owner.nap = nap;
    owner.beats = nap.count() == 0 ? 0 : 1;
    owner.start(takes_turns);
    while (owner.won == 0) owner.process.step();
    return owner;
}

void add_breaker(site& s, actor& victim, int pid = 80) {
    auto& a = s.add(0, pid);
    a.victim = &victim;
    a.process.patience = 2;
    a.start(breaks);
}

void add_contenders(site& s, int how_many, fslock::witness how, int patience = 3) {
    for (int i = 0; i < how_many; ++i) {
        auto& a = s.add(s.shared() ? i : 0, 100 + i);
        a.opts.witness = how;
        if (s.shared()) a.opts.poll_interval = core::milliseconds(60'000);
        a.process.patience = patience;
        a.start(takes_turns);
    }
}

template <int Contenders>
void guarded(site& s) {
    auto& owner = add_owner(s, 0, fslock::witness::automatic);
    add_breaker(s, owner);
    add_contenders(s, Contenders, fslock::witness::automatic);
}

void guarded_by_two(site& s) {
    auto& owner = add_owner(s, 0, fslock::witness::automatic);
    add_breaker(s, owner);
    add_breaker(s, owner, 81);
    add_contenders(s, 1, fslock::witness::automatic);
}

/// Wants its lock again afterwards.
void guarded_and_back(site& s) {
    auto& owner = s.add(0, 90);
    owner.cares = false;
    owner.looks = false;
    owner.turns = 2;
    owner.start(takes_turns);
    while (owner.won == 0) owner.process.step();
    add_breaker(s, owner);
    add_contenders(s, 1, fslock::witness::automatic);
}

void dead_owner(site& s) {
    s.disk.put(lock_path, record_text(50, s.hosts[0], writer::ours), long_ago);
    auto& owner = s.add(0, 50);
    owner.epoch = "50-1600000000000000000";
    owner.die();
    add_breaker(s, owner);
    add_contenders(s, 2, fslock::witness::automatic);
}

/// With a flock, or nothing, time has to keep owner and breaker apart.
template <int Contenders, int Nap = 60>
void by_flock(site& s) {
    s.disk.witness = os::witness_kind::flock;
    auto& owner = add_owner(s, 0, fslock::witness::automatic, core::milliseconds(Nap));
    add_breaker(s, owner);
    add_contenders(s, Contenders, fslock::witness::automatic);
}

template <int Contenders, int Nap = 60>
void without_witness(site& s) {
    s.disk.records_change = true;
    auto& owner = add_owner(s, 0, fslock::witness::off, core::milliseconds(Nap));
    add_breaker(s, owner);
    add_contenders(s, Contenders, fslock::witness::off);
}

template <int Contenders>
void shared(site& s) {
    s.disk.kind = os::fs_class::shared;
    s.disk.records_change = true;
    s.add_host("other");
    s.add_host("third");
    auto& owner = add_owner(s, 2, fslock::witness::automatic, core::milliseconds(2'050));
    add_breaker(s, owner);
    add_contenders(s, Contenders, fslock::witness::automatic);
}

/// Beats once while its lock is broken.
void shared_that_beats(site& s) {
    s.disk.kind = os::fs_class::shared;
    s.disk.records_change = true;
    s.add_host("other");
    s.add_host("third");
    auto& owner = s.add(2, 90);
    owner.cares = false;
    owner.beats = 1;
    owner.nap = core::milliseconds(500);
    owner.start(takes_turns);
    while (owner.won == 0) owner.process.step();
    add_breaker(s, owner);
    add_contenders(s, 1, fslock::witness::automatic);
}

const scenario kernel_lock[] = {
    {"broken, one contender", guarded<1>, 1, 0, 0, 4},
    {"broken, two contenders", guarded<2>, 0, 0, 0, 2},
    {"broken by two", guarded_by_two, 0, 0, 0, 1},
    {"broken, and its owner comes back", guarded_and_back, 0, 0, 0, 3},
    {"broken, a dead owner", dead_owner, 0, 0, 0, 2},
    {"broken, and all but one stand still", guarded<1>, 0, 1, 0, 2},
};

const scenario in_time[] = {
    {"broken, with a flock", by_flock<1>, 1, 0, 0, 4, true},
    {"broken, with a flock, two contenders", by_flock<2>, 1, 0, 0, 1, true},
    {"broken, with a flock, given back at once", by_flock<1, 0>, 1, 0, 0, 3, true},
    {"broken, without a witness, given back at once", without_witness<1, 0>, 1, 0, 0, 2, true},
    {"broken, without a witness", without_witness<1>, 1, 0, 0, 3, true},
    {"broken, without a witness, two contenders", without_witness<2>, 0, 0, 0, 1, true},
    {"broken on a shared filesystem", shared<1>, 1, 0, 0, 4, true},
    {"broken on a shared filesystem, two contenders", shared<2>, 1, 0, 0, 2, true},
    {"broken on a shared filesystem while it beats", shared_that_beats, 1, 0, 0, 3, true},
};

template <std::size_t N>
void explore_all(const scenario (&scenarios)[N]) {
    for (const auto& s : scenarios) {
        const auto t = explore(s);
        BOOST_TEST(t.won > t.ends, s.name);  // the owner, and mostly somebody after it
    }
}

}  // namespace

BOOST_AUTO_TEST_CASE(whoever_owns_after_a_broken_lock_owns_alone) { explore_all(kernel_lock); }

BOOST_AUTO_TEST_CASE(nor_do_two_own_where_time_keeps_breaker_and_owner_apart) { explore_all(in_time); }
