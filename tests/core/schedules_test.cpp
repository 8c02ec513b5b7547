// One kernel: two and three contenders, of whom one may die after any step, and all may stand still for hours.
#include <boost/test/unit_test.hpp>

#include "schedules.hpp"

namespace {

using namespace support;
using schedules::explore;
using schedules::scenario;

constexpr std::int64_t long_ago = 7200 * one_second;

void put_dead(site& s, const std::string& path, writer by) {
    s.disk.put(path, record_text(by == writer::ours ? 50 : 51, s.hosts[0], by), long_ago);
}

/// The more of them there are, the less often each looks again.
template <int Contenders>
void contend(site& s) {
    for (int i = 0; i < Contenders; ++i) {
        auto& a = s.add(0, 100 + i);
        a.process.patience = 5 - Contenders;
        a.start(takes_turns);
    }
}

template <int Contenders>
void free_lock(site& s) {
    contend<Contenders>(s);
}

template <int Contenders>
void dead_owner(site& s) {
    put_dead(s, lock_path, writer::ours);
    contend<Contenders>(s);
}

template <int Contenders>
void dead_owner_and_dead_token(site& s) {
    put_dead(s, lock_path, writer::ours);
    put_dead(s, token_path, writer::ours);
    contend<Contenders>(s);
}

template <int Contenders>
void dead_token_alone(site& s) {
    put_dead(s, token_path, writer::ours);
    s.stays = record_text(50, s.hosts[0], writer::ours);  // who gets a free lock does not look there
    contend<Contenders>(s);
}

template <int Contenders>
void dead_first_implementation(site& s) {
    put_dead(s, lock_path, writer::first_implementation);
    contend<Contenders>(s);
}

template <int Contenders>
void dead_first_implementation_and_token(site& s) {
    put_dead(s, lock_path, writer::first_implementation);
    put_dead(s, token_path, writer::first_implementation);
    contend<Contenders>(s);
}

template <int Contenders>
void damaged(site& s) {
    s.disk.put(lock_path, "", long_ago);
    contend<Contenders>(s);
}

/// The first one owns, and gives back some time.
template <int Contenders>
void held(site& s) {
    auto& owner = s.add_started(0, 90, takes_turns);
    while (owner.won == 0) owner.process.step();
    contend<Contenders>(s);
}

const scenario two[] = {
    {"two, free", free_lock<2>},
    {"two, held", held<2>, 1, 0, 0, 3},
    {"two, a dead owner", dead_owner<2>},
    {"two, a dead owner and a dead token", dead_owner_and_dead_token<2>},
    {"two, a dead token alone", dead_token_alone<2>},
    {"two, a dead owner of the first implementation", dead_first_implementation<2>},
    {"two, that, and its token", dead_first_implementation_and_token<2>},
    {"two, a damaged record", damaged<2>},
};

const scenario two_that_stop[] = {
    {"two that stop, free", free_lock<2>, 0, 1, 0, 2},
    {"two that stop, a dead owner", dead_owner<2>, 0, 1, 0, 2},
    {"two that stop, a dead owner and a dead token", dead_owner_and_dead_token<2>, 0, 1, 0, 2},
    {"two that stop, a damaged record", damaged<2>, 0, 1, 0, 2},
};

const scenario three[] = {
    {"three, free", free_lock<3>, 1, 0, 0, 2},
    {"three, a dead owner", dead_owner<3>, 1, 0, 0, 2},
    {"three, a dead owner and a dead token", dead_owner_and_dead_token<3>, 1, 0, 0, 1},
    {"three, that, and its token", dead_first_implementation_and_token<3>, 1, 0, 0, 1},
    {"three, a damaged record", damaged<3>, 1, 0, 0, 2},
};

template <std::size_t N>
void explore_all(const scenario (&scenarios)[N]) {
    for (const auto& s : scenarios) {
        const auto t = explore(s);
        BOOST_TEST(t.won > t.ends / 4, s.name);
    }
}

}  // namespace

BOOST_AUTO_TEST_CASE(no_interleaving_of_two_contenders_has_two_owners_or_leaves_anything_behind) { explore_all(two); }

BOOST_AUTO_TEST_CASE(nor_when_all_but_one_stand_still_for_hours_at_any_point) { explore_all(two_that_stop); }

BOOST_AUTO_TEST_CASE(nor_does_one_of_three_contenders_that_interrupt_each_other) { explore_all(three); }
