// Somebody sweeps while others take a dead owner's lock over: nobody may notice.
#include <boost/test/unit_test.hpp>

#include "schedules.hpp"

namespace {

using namespace support;
using schedules::explore;
using schedules::scenario;

constexpr std::int64_t long_ago = 7200 * one_second;

/// The sweeper is the last to come: it sees the temps that are there by then.
template <int Contenders>
void dead_owner_and_dead_token(site& s) {
    s.somebody_must_win = false;  // a sweep may take longer than they have patience
    s.disk.put(lock_path, record_text(50, s.hosts[0], writer::ours), long_ago);
    s.disk.put(token_path, record_text(50, s.hosts[0], writer::ours), long_ago);
    for (int i = 0; i < Contenders; ++i) {
        auto& a = s.add(0, 100 + i);
        a.process.patience = 3;
        a.start(takes_turns);
    }
    s.add_started(0, 80, sweeps);
}

/// Both have prepared a record under a name, and stood still for longer than the grace. One of them is dead.
template <bool Dies>
void named_temps(site& s) {
    s.disk.unnamed_files = false;
    for (int i = 0; i < 2; ++i) {
        auto& a = s.add(0, 100 + i);
        a.process.patience = 3;
        a.start(takes_turns);
        while (a.process.waits() && !a.process.next().starts_with("link")) a.process.step();
    }
    s.disk.now_ns += 24 * 3600 * one_second;
    if (Dies) s.actors[0]->die();
    s.add_started(0, 80, sweeps);
}

void shared_token(site& s) {
    s.disk.kind = os::fs_class::shared;
    s.add_host("other");
    s.add_host("third");
    for (const auto& path : {lock_path, token_path})
        s.disk.put(path, record_text(50, s.hosts[2], writer::ours_without_witness), long_ago);
    for (int i = 0; i < 2; ++i) {
        auto& a = s.add(i, 100 + i);
        a.opts.poll_interval = core::milliseconds(60'000);
        a.process.patience = 12;
        a.start(takes_turns);
    }
    s.add_started(0, 80, sweeps);
}

const scenario scenarios[] = {
    {"swept, one contender", dead_owner_and_dead_token<1>, 1, 0, 0, -1},
    {"swept, two contenders", dead_owner_and_dead_token<2>, 0, 0, 0, 2},
    {"swept, two that prepared a record", named_temps<false>, 0, 0, 0, -1},
    {"swept, one that prepared a record and one that died of it", named_temps<true>, 0, 0, 0, -1},
    {"swept, on a shared filesystem", shared_token, 1, 0, 0, 2, true},
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_sweep_among_contenders_changes_nothing_for_them) {
    for (const auto& s : scenarios) BOOST_TEST(explore(s).won > 0, s.name);
}
