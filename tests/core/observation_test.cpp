// What a process has seen of a record itself: beats, gaps, and their veto.
#include <boost/test/unit_test.hpp>

#include "situation.hpp"

namespace {

using namespace support;
using namespace std::chrono_literals;
using fslock::core::judge;
using fslock::core::observation;
using fslock::core::observe;
using fslock::core::steady;

constexpr auto pace = 5'000ms;

/// A waiter that looks at one record again and again while its owner does this or that.
struct watcher {
    situation scene = remote();
    fslock::options limits;
    observation seen;
    steady clock = now;

    explicit watcher(situation s) : scene(std::move(s)) {}

    watcher& pass(milliseconds time) {
        clock += time;
        *scene.evidence().filesystem_now_ns += std::chrono::nanoseconds(time).count();
        return *this;
    }
    /// The clock of the filesystem is set.
    watcher& leap(std::chrono::nanoseconds by) {
        return *scene.evidence().filesystem_now_ns += by.count(), *this;
    }
    watcher& beat() {
        auto& e = scene.evidence();
        e.file.modified_ns = *e.filesystem_now_ns;
        e.rec.heartbeat_at_ms += 5'000;
        return *this;
    }
    watcher& look() {
        auto& e = scene.evidence();
        e.now = clock;
        observe(seen, e.rec, e.file, clock, limits);
        e.seen = seen;
        return *this;
    }
    [[nodiscard]] milliseconds watched() const {
        return std::chrono::duration_cast<milliseconds>(clock - seen.silent_since);
    }
    [[nodiscard]] fslock::core::verdict verdict() const { return judge(scene.evidence(), ourselves(), limits); }
};

BOOST_AUTO_TEST_SUITE(observation_of_a_record)

BOOST_AUTO_TEST_CASE(the_first_look_starts_the_silence) {
    watcher w(remote().aged(3'600'000));
    w.look();
    BOOST_TEST(w.watched().count() == 0);
    BOOST_TEST(!w.seen.last_change.has_value());
    BOOST_TEST(w.seen.inode == 42U);
    BOOST_TEST(w.seen.epoch == w.scene.evidence().rec.writer_epoch);
    BOOST_TEST((w.seen.last_look == w.clock));
}

BOOST_AUTO_TEST_CASE(short_looks_add_up_while_nothing_changes) {
    watcher w(remote());
    w.look();
    for (int i = 0; i < 10; ++i) w.pass(3 * pace).look();
    BOOST_TEST(w.watched().count() == 150'000);
    BOOST_TEST(!w.seen.last_change.has_value());
}

BOOST_AUTO_TEST_CASE(every_kind_of_change_is_a_beat) {
    struct {
        const char* name;
        void (*change)(fslock::core::evidence&);
    } const rows[] = {
        {"mtime", [](auto& e) { ++e.file.modified_ns; }},
        {"mtime backwards", [](auto& e) { e.file.modified_ns -= 1'000'000'000; }},
        {"heartbeat", [](auto& e) { ++e.rec.heartbeat_at_ms; }},
        {"heartbeat backwards", [](auto& e) { e.rec.heartbeat_at_ms -= 60'000; }},
        {"inode under the same epoch", [](auto& e) { ++e.file.inode; }},
    };
    for (const auto& r : rows) {
        BOOST_TEST_CONTEXT(r.name) {
            watcher w(remote());
            w.look().pass(7s);
            r.change(w.scene.evidence());
            w.look();
            BOOST_TEST(w.watched().count() == 0);
            BOOST_REQUIRE(w.seen.last_change.has_value());
            BOOST_TEST((*w.seen.last_change == w.clock));
            const auto changed_at = w.clock;
            w.pass(4s).look();
            BOOST_TEST(w.watched().count() == 4'000);
            BOOST_TEST((w.seen.last_change == changed_at));
        }
    }
}

BOOST_AUTO_TEST_CASE(what_does_not_show_life_is_no_beat) {
    watcher w(remote());
    w.look().pass(7s);
    w.scene.evidence().file.links = 2;
    w.scene.evidence().rec.label = "edited";
    w.look();
    BOOST_TEST(w.watched().count() == 7'000);
    BOOST_TEST(!w.seen.last_change.has_value());
}

BOOST_AUTO_TEST_CASE(a_gap_in_our_looks_starts_the_silence_anew) {  // D08
    watcher at(remote());
    at.look().pass(3 * pace).look();
    BOOST_TEST(at.watched().count() == 15'000);
    watcher past(remote());
    past.look().pass(3 * pace + 1ms).look();
    BOOST_TEST(past.watched().count() == 0);
    BOOST_TEST(!past.seen.last_change.has_value());
}

BOOST_AUTO_TEST_CASE(a_gap_is_more_than_three_intervals_and_than_our_own_waits) {
    struct {
        std::int64_t pace;
        milliseconds poll;
        milliseconds longest;
    } const rows[] = {
        {60'000, 100ms, 180s}, {100, 100ms, 15s}, {100, 10s, 30s}, {60'000, 1min, 180s}, {5'000, 1min, 180s},
    };
    for (const auto& r : rows) {
        BOOST_TEST_CONTEXT(r.pace << " ms, looking every " << r.poll.count() << " ms") {
            watcher w(remote().pace(r.pace));
            w.limits.poll_interval = r.poll;
            w.look().pass(r.longest).look();
            BOOST_TEST(w.watched().count() == r.longest.count());
            w.pass(r.longest + 1ms).look();
            BOOST_TEST(w.watched().count() == 0);
        }
    }
}

BOOST_AUTO_TEST_CASE(a_gap_does_not_forget_the_last_beat) {
    watcher w(remote());
    w.look().pass(1s).beat().look();
    const auto beat_at = w.clock;
    w.pass(16s).look();
    BOOST_TEST((w.seen.last_change == beat_at));
}

BOOST_AUTO_TEST_CASE(another_epoch_is_another_owner) {
    watcher w(remote());
    w.look().pass(1s).beat().look().pass(9s);
    w.scene.evidence().rec.writer_epoch = "5000-1700000000000000002";  // the same inode, used again
    w.look();
    BOOST_TEST(w.watched().count() == 0);
    BOOST_TEST(!w.seen.last_change.has_value());
    BOOST_TEST(w.seen.epoch == "5000-1700000000000000002");
    w.pass(2s).look();
    BOOST_TEST(w.watched().count() == 2'000);
}

BOOST_AUTO_TEST_CASE(a_damaged_record_is_watched_by_its_inode_and_mtime) {  // C02
    watcher w(situation().malformed().witness(lock_state::free));
    w.look();
    BOOST_TEST(!w.seen.last_change.has_value());  // the first look is no beat, whatever the epoch
    w.pass(4s).look();
    BOOST_TEST(w.watched().count() == 4'000);
    ++w.scene.evidence().file.inode;
    w.look();
    BOOST_TEST(w.watched().count() == 0);
    BOOST_TEST(w.seen.last_change.has_value());
    w.pass(4s);
    w.scene.evidence().rec = situation().evidence().rec;
    w.look();
    BOOST_TEST(w.watched().count() == 0);
    BOOST_TEST(!w.seen.last_change.has_value());
}

BOOST_AUTO_TEST_SUITE_END()
BOOST_AUTO_TEST_SUITE(veto_of_a_seen_beat)

BOOST_AUTO_TEST_CASE(a_beat_that_was_seen_vetoes_death_for_three_intervals) {  // A12
    const auto elapsed = 15'000;
    struct {
        const char* name;
        situation given;
        proof why;
    } const rows[] = {
        {"gone", situation().gone(), proof::process_gone},
        {"A12 start time differs", situation().exists(1), proof::process_reused},
        {"leftover", situation().pid(our_pid).start(our_start).exists(our_start).silent(15'001),
         proof::leftover},
        {"seed peer, gone", seed_peer().gone().silent(15'001), proof::process_gone},
        {"seed peer, reused", seed_peer().exists(1).silent(15'001), proof::process_reused},
        {"seed peer, no start time", seed_peer().start({}).exists(1).silent(75'001), proof::silent},
        {"earlier boot", situation().boot("other").silent(15'001), proof::earlier_boot},
        {"remote", remote().silent(75'001), proof::silent},
        {"D05 remote, after a leap of the clock", remote().aged(86'400'000), proof::silent},
        {"damaged", situation().malformed().witness(lock_state::free).silent(5'001),
         proof::malformed_unchanged},
        {"token", situation().token().exists(peer_start).silent(600'001), proof::silent},
    };
    for (const auto& r : rows) {
        const row checked[] = {
            {"seen just now", situation(r.given).changed(0), fate::unknown},
            {"at the end", situation(r.given).changed(elapsed - 1), fate::unknown},
            {"over", situation(r.given).changed(elapsed), fate::dead, r.why},
        };
        BOOST_TEST_CONTEXT(r.name) {
            check_rows(checked);
        }
    }
}

BOOST_AUTO_TEST_CASE(the_veto_lasts_for_three_of_the_owners_intervals) {
    const row rows[] = {
        {"slow, at the end", situation().gone().pace(60'000).changed(179'999), fate::unknown},
        {"slow, over", situation().gone().pace(60'000).changed(180'000), fate::dead, proof::process_gone},
        {"fast, at the end", situation().gone().pace(100).changed(299), fate::unknown},
        {"fast, over", situation().gone().pace(100).changed(300), fate::dead, proof::process_gone},
    };
    check_rows(rows);
}

BOOST_AUTO_TEST_CASE(the_veto_touches_no_other_verdict) {
    const row rows[] = {
        {"alive", situation().exists(peer_start).changed(0), fate::alive, proof::process_alive},
        {"held", situation().guard(witness_kind::ofd).witness(lock_state::held).changed(0), fate::alive,
         proof::witness_held},
        {"witness free", situation().guard(witness_kind::ofd).witness(lock_state::free).changed(0), fate::dead,
         proof::witness_free},
        {"being reclaimed",
         situation().guard(witness_kind::ofd).witness(lock_state::free).removal(lock_state::held).changed(0),
         fate::being_reclaimed, proof::witness_free},
        {"not a lock", situation().foreign().changed(0), fate::not_a_lock},
    };
    check_rows(rows);
}

BOOST_AUTO_TEST_SUITE_END()
BOOST_AUTO_TEST_SUITE(watching_an_owner)

BOOST_AUTO_TEST_CASE(an_owner_that_beats_is_never_dead) {  // A12, B05, B06, D01, D03, D05
    const situation owners[] = {remote(),
                                remote().heartbeat_at(0),
                                situation().boot("other"),
                                situation().pid_namespace(1).gone(),
                                situation().pid_namespace(1).exists(1),
                                seed_peer().gone(),
                                seed_peer().exists(1)};
    for (const auto& owner : owners) {
        watcher w(owner);
        w.look();
        for (int beats = 0; beats < 40; ++beats) {
            w.beat();
            for (int looks = 0; looks < 10; ++looks) {
                BOOST_REQUIRE(w.look().verdict().what == fate::unknown);
                w.pass(500ms);
                if (beats == 20 && looks == 5) w.leap(24h);
                if (beats == 30 && looks == 5) w.leap(-48h);
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(an_owner_that_falls_silent_is_dead_at_its_limit) {  // B04, B05
    watcher w(remote());
    w.beat().look();
    while (w.verdict().what == fate::unknown && w.watched() < 200s) w.pass(500ms).look();
    BOOST_TEST(w.verdict().what == fate::dead);
    BOOST_TEST(w.watched().count() == 75'500);
}

BOOST_AUTO_TEST_CASE(nobody_is_dead_for_having_been_suspended_with_us) {  // D08
    watcher stopped(remote());
    stopped.look().pass(12s).look().pass(120s).look();
    BOOST_TEST(stopped.verdict().what == fate::unknown);
    BOOST_TEST(stopped.pass(14'999ms).look().verdict().what == fate::unknown);
    BOOST_TEST(stopped.pass(1ms).look().verdict().what == fate::dead);
    watcher asleep(remote());  // our clock stood still, that of the filesystem did not
    asleep.look().pass(12s).beat().look().pass(1s).leap(120s).look();
    BOOST_TEST(asleep.verdict().what == fate::unknown);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
