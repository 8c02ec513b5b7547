// The judge's table, rows 1 to 4: what the kernel and the process say.
#include <boost/test/unit_test.hpp>

#include "situation.hpp"

namespace {

using namespace support;

constexpr auto ofd = witness_kind::ofd;
constexpr auto held = lock_state::held;
constexpr auto available = lock_state::free;
constexpr auto not_known = lock_state::unknown;
constexpr std::int64_t a_day = 86'400'000;
constexpr const char* other_boot = "99999999-2222-4333-8444-555555555555";

situation guarded(lock_state s) {
    return situation().guard(ofd).witness(s);
}
situation alive_here() {
    return situation().exists(peer_start);
}

BOOST_AUTO_TEST_SUITE(judge_by_witness)

BOOST_AUTO_TEST_CASE(the_kernel_has_the_last_word_on_a_local_filesystem) {  // row 1; A18, A19
    const row rows[] = {
        {"held", guarded(held), fate::alive, proof::witness_held},
        {"held by flock", guarded(held).guard(witness_kind::flock), fate::alive, proof::witness_held},
        {"held, silent for a day", guarded(held).silent(a_day), fate::alive, proof::witness_held},
        {"held, process gone", guarded(held).gone().silent(a_day), fate::alive, proof::witness_held},
        {"held, pid reused", guarded(held).exists(1).silent(a_day), fate::alive, proof::witness_held},
        {"held, other boot", guarded(held).boot(other_boot).silent(a_day), fate::alive, proof::witness_held},
        {"held, byte 1 too", guarded(held).removal(held), fate::alive, proof::witness_held},
        {"free, beaten now", guarded(available), fate::dead, proof::witness_free},
        {"free by flock", guarded(available).guard(witness_kind::flock), fate::dead, proof::witness_free},
        {"free, process lives", guarded(available).exists(peer_start), fate::dead, proof::witness_free},
        {"free, our own epoch", guarded(available).epoch_is_ours(), fate::dead, proof::witness_free},
        {"free, a change just seen: no veto", guarded(available).changed(0), fate::dead, proof::witness_free},
        {"free, other boot", guarded(available).boot(other_boot), fate::dead, proof::witness_free},
        {"free, byte 1 free", guarded(available).removal(available), fate::dead, proof::witness_free},
        {"free, byte 1 held", guarded(available).removal(held), fate::being_reclaimed, proof::witness_free},
        {"token, held", guarded(held).token().silent(a_day), fate::alive, proof::witness_held},
        {"token, free", guarded(available).token(), fate::dead, proof::witness_free},
    };
    check_rows(rows);
}

BOOST_AUTO_TEST_CASE(a_witness_that_cannot_be_asked_counts_as_absent) {
    const row rows[] = {
        {"process lives", guarded(not_known).exists(peer_start), fate::alive, proof::process_alive},
        {"process gone", guarded(not_known).gone(), fate::dead, proof::process_gone},
        {"nothing known", guarded(not_known), fate::unknown},  // A16
        {"byte 1 held says nothing", guarded(not_known).removal(held), fate::unknown},
        {"shared, held", remote().guard(ofd).witness(held).silent(80'000), fate::dead, proof::silent},
        {"shared, free", remote().guard(ofd).witness(available), fate::unknown},
    };
    check_rows(rows);
}

BOOST_AUTO_TEST_CASE(a_record_without_a_guard_is_not_judged_by_locks) {
    const row rows[] = {
        {"free, process lives", alive_here().witness(available), fate::alive, proof::process_alive},
        {"held, process gone", situation().gone().witness(held), fate::dead, proof::process_gone},
        {"byte 1 held", situation().gone().witness(available).removal(held), fate::dead, proof::process_gone},
    };
    check_rows(rows);
}

BOOST_AUTO_TEST_CASE(the_witness_decides_only_where_it_was_asked) {
    using fslock::core::witness_decides;
    BOOST_TEST(witness_decides(guarded(held).evidence()));
    BOOST_TEST(witness_decides(guarded(available).evidence()));
    BOOST_TEST(witness_decides(guarded(held).guard(witness_kind::flock).evidence()));
    BOOST_TEST(!witness_decides(guarded(not_known).evidence()));
    BOOST_TEST(!witness_decides(guarded(held).shared().evidence()));
    BOOST_TEST(!witness_decides(situation().witness(held).evidence()));
}

BOOST_AUTO_TEST_CASE(our_own_record_is_no_leftover_while_its_witness_cannot_be_asked) {  // A16
    const auto ours = guarded(not_known).pid(our_pid).start(our_start).exists(our_start).silent(a_day);
    const row rows[] = {
        {"we hold it", situation(ours).epoch_is_ours(), fate::alive, proof::process_alive},
        {"A06 our earlier image held it", situation(ours), fate::dead, proof::leftover},
    };
    check_rows(rows);
}

BOOST_AUTO_TEST_SUITE_END()
BOOST_AUTO_TEST_SUITE(judge_by_process)

BOOST_AUTO_TEST_CASE(a_process_of_our_pid_namespace_decides_at_once) {  // row 2
    const row rows[] = {
        {"lives", alive_here(), fate::alive, proof::process_alive},
        {"A19 lives, silent for a day", alive_here().silent(a_day), fate::alive, proof::process_alive},
        {"A18, A03 gone or only a thread, beaten now", situation().gone(), fate::dead, proof::process_gone},
        {"gone, shared filesystem", situation().gone().shared(), fate::dead, proof::process_gone},
        {"A01 other start time", situation().exists(peer_start - 1'000), fate::dead, proof::process_reused},
        {"one tick off", situation().exists(peer_start + 1), fate::dead, proof::process_reused},
        {"B10 started after now", situation().start(~0ULL).exists(9), fate::dead, proof::process_reused},
        {"hostname does not matter", alive_here().host("beta"), fate::alive, proof::process_alive},
        {"A16 not looked up", situation(), fate::unknown},
        {"A15 start time unreadable", situation().exists({}), fate::unknown},
        {"A17 no start time recorded", situation().start({}).exists(peer_start), fate::unknown},
    };
    check_rows(rows);
}

// Another copy of the library in this process has a table of its own, so silence has to confirm it.
BOOST_AUTO_TEST_CASE(a_record_of_ours_that_we_do_not_know_is_left_over) {  // row 2; A06
    const auto ours = situation().pid(our_pid).start(our_start).exists(our_start);
    const row rows[] = {
        {"beaten now", situation(ours), fate::unknown},
        {"at the limit", situation(ours).silent(15'000), fate::unknown},
        {"past it", situation(ours).silent(15'001), fate::dead, proof::leftover},
        {"D16 slow, at", situation(ours).pace(60'000).silent(180'000), fate::unknown},
        {"D16 slow, past", situation(ours).pace(60'000).silent(180'001), fate::dead, proof::leftover},
        {"known", situation(ours).epoch_is_ours().silent(a_day), fate::alive, proof::process_alive},
        {"of our pid, started earlier", situation(ours).start(5), fate::dead, proof::process_reused},
    };
    check_rows(rows);
}

BOOST_AUTO_TEST_CASE(a_process_that_cannot_be_known_falls_to_silence) {  // row 2 to 5; A15, A16, A17
    const situation bases[] = {situation(), situation().exists({}), situation().start({}).exists(peer_start)};
    for (const auto& base : bases) {
        const row rows[] = {
            {"at the limit", situation(base).silent(75'000), fate::unknown},
            {"past the limit", situation(base).silent(75'001), fate::dead, proof::silent},
            {"past the limit, not watched", situation(base).aged(75'001), fate::unknown},
        };
        check_rows(rows);
    }
}

BOOST_AUTO_TEST_CASE(a_record_of_another_pid_namespace_waits_for_silence) {  // B01, B02
    const auto elsewhere = situation().pid_namespace(our_namespace + 1);
    const row rows[] = {
        {"B01 no such pid here", situation(elsewhere).gone(), fate::unknown},
        {"no such pid, 16 s", situation(elsewhere).gone().silent(16'000), fate::unknown},
        {"no such pid, silent", situation(elsewhere).gone().silent(75'001), fate::dead, proof::silent},
        {"B02 another process has the pid", situation(elsewhere).exists(1), fate::unknown},
        {"the same start by chance", situation(elsewhere).exists(peer_start), fate::unknown},
        {"B02 silent", situation(elsewhere).exists(peer_start).silent(75'001), fate::dead, proof::silent},
        {"our pid and start", situation(elsewhere).pid(our_pid).start(our_start).exists(our_start),
         fate::unknown},
    };
    check_rows(rows);
}

BOOST_AUTO_TEST_CASE(two_unknowns_are_not_equal) {  // B09
    auto no_boot = ourselves();
    no_boot.boot_id = "";
    auto no_namespace = ourselves();
    no_namespace.pid_ns.reset();
    const row neither_has_a_boot[] = {{"gone", situation().boot("").gone(), fate::unknown}};
    const row we_have_no_boot[] = {{"gone", situation().gone(), fate::unknown}};
    const row they_have_no_boot[] = {{"gone", situation().boot("").gone(), fate::unknown}};
    const row neither_has_a_namespace[] = {{"gone", seed_peer().gone(), fate::unknown}};
    check_rows(neither_has_a_boot, no_boot);
    check_rows(we_have_no_boot, no_boot);
    check_rows(they_have_no_boot);
    check_rows(neither_has_a_namespace, no_namespace);
    check_rows(we_have_no_boot, no_namespace);
}

BOOST_AUTO_TEST_SUITE_END()
BOOST_AUTO_TEST_SUITE(judge_a_peer_without_namespace)

BOOST_AUTO_TEST_CASE(a_seed_peer_is_dead_only_after_silence) {  // row 3
    const auto ours = seed_peer().pid(our_pid).start(our_start).exists(our_start);
    const row rows[] = {
        {"lives", seed_peer().exists(peer_start), fate::alive, proof::process_alive},
        {"A19 lives, silent for a day", seed_peer().exists(peer_start).silent(a_day), fate::alive,
         proof::process_alive},
        {"B01 gone, beaten now", seed_peer().gone(), fate::unknown},
        {"gone, at the limit", seed_peer().gone().silent(15'000), fate::unknown},
        {"gone, past it", seed_peer().gone().silent(15'001), fate::dead, proof::process_gone},
        {"gone, past it by mtime alone", seed_peer().gone().aged(15'001), fate::dead, proof::process_gone},
        {"gone, past it by watching", seed_peer().gone().watched(15'001), fate::dead, proof::process_gone},
        {"shared filesystem", seed_peer().gone().shared().aged(15'001), fate::dead, proof::process_gone},
        {"reused, at the limit", seed_peer().exists(1).silent(15'000), fate::unknown},
        {"reused, past it", seed_peer().exists(1).silent(15'001), fate::dead, proof::process_reused},
        {"A06 ours, at the limit", situation(ours).silent(15'000), fate::unknown},
        {"A06 ours, past it", situation(ours).silent(15'001), fate::dead, proof::leftover},
        {"ours, epoch known", situation(ours).epoch_is_ours().silent(a_day), fate::alive, proof::process_alive},
    };
    check_rows(rows);
}

BOOST_AUTO_TEST_CASE(a_seed_peer_without_start_time_lives_while_its_pid_does_and_beats) {  // row 3; A15, A17
    for (const auto& base : {seed_peer().start({}).exists(1), seed_peer().exists({})}) {
        const row rows[] = {
            {"beaten now", base, fate::alive, proof::process_alive},
            {"at the limit", situation(base).silent(75'000), fate::alive, proof::process_alive},
            {"past it", situation(base).silent(75'001), fate::dead, proof::silent},
            {"past it, watched too short", situation(base).aged(75'001).watched(14'999), fate::alive,
             proof::process_alive},
            {"past it, watched enough", situation(base).aged(75'001).watched(15'000), fate::dead,
             proof::silent},
        };
        check_rows(rows);
    }
    const row not_looked_up[] = {
        {"A16 beaten now", seed_peer(), fate::unknown},
        {"A16 at the limit", seed_peer().silent(75'000), fate::unknown},
        {"A16 past it", seed_peer().silent(75'001), fate::dead, proof::silent},
    };
    check_rows(not_looked_up);
}

BOOST_AUTO_TEST_CASE(the_hostname_counts_only_where_a_boot_id_is_missing) {  // row 3; B09, B13
    const auto no_boot_id = seed_peer().boot("").gone();
    const row rows[] = {
        {"same host", situation(no_boot_id).silent(15'001), fate::dead, proof::process_gone},
        {"same host, lives", situation(no_boot_id).exists(peer_start), fate::alive, proof::process_alive},
        {"other host", situation(no_boot_id).host("beta").silent(15'001), fate::unknown},
        {"no host", situation(no_boot_id).host("").silent(15'001), fate::unknown},
        {"same boot, other host", seed_peer().host("alpha/12").gone().silent(15'001), fate::dead,
         proof::process_gone},
        {"other boot, same host, lives", seed_peer().boot(other_boot).shared().exists(peer_start),
         fate::unknown},
        {"B13 our pid, other host",
         situation(no_boot_id).host("beta").pid(our_pid).start(our_start).exists(our_start).silent(15'001),
         fate::unknown},
    };
    check_rows(rows);
    auto self = ourselves();
    self.boot_id = "";
    const row ours_unknown[] = {
        {"same host", seed_peer().gone().silent(15'001), fate::dead, proof::process_gone},
        {"other host", seed_peer().gone().host("beta").silent(15'001), fate::unknown},
    };
    check_rows(ours_unknown, self);
    self.nodename.clear();
    const row nameless[] = {
        {"no name is no identity", situation(no_boot_id).host("").silent(15'001), fate::unknown}};
    check_rows(nameless, self);
}

BOOST_AUTO_TEST_CASE(nothing_is_asked_about_a_process_of_elsewhere) {
    using fslock::core::needs_process;
    const auto self = ourselves();
    BOOST_TEST(needs_process(situation().evidence().rec, self));
    BOOST_TEST(needs_process(seed_peer().evidence().rec, self));
    BOOST_TEST(needs_process(seed_peer().boot("").evidence().rec, self));
    BOOST_TEST(!needs_process(situation().boot("").evidence().rec, self));
    BOOST_TEST(!needs_process(situation().boot(other_boot).evidence().rec, self));
    BOOST_TEST(!needs_process(situation().pid_namespace(1).evidence().rec, self));
    BOOST_TEST(!needs_process(seed_peer().boot(other_boot).evidence().rec, self));
    BOOST_TEST(!needs_process(seed_peer().boot("").host("beta").evidence().rec, self));
}

BOOST_AUTO_TEST_SUITE_END()
BOOST_AUTO_TEST_SUITE(judge_an_earlier_boot)

BOOST_AUTO_TEST_CASE(a_record_of_an_earlier_boot_is_dead_after_silence) {  // row 4
    const auto old = situation().boot(other_boot);
    const row rows[] = {
        {"B06 beaten now", situation(old), fate::unknown},
        {"B06 beaten now, no such pid", situation(old).gone(), fate::unknown},
        {"at the limit", situation(old).silent(15'000), fate::unknown},
        {"past it", situation(old).silent(15'001), fate::dead, proof::earlier_boot},
        {"past it by mtime alone", situation(old).aged(15'001), fate::dead, proof::earlier_boot},
        {"A02 pid 1 lives", situation(old).pid(1).start(5).exists(5).aged(15'001), fate::dead,
         proof::earlier_boot},
        {"D04 mtime in the future", situation(old).aged(-a_day), fate::unknown},
        {"D04 the same, watched", situation(old).aged(-a_day).watched(15'001), fate::dead, proof::earlier_boot},
        {"no namespace recorded", situation(old).pid_namespace({}).silent(15'001), fate::dead,
         proof::earlier_boot},
        {"of another host too", situation(old).host("beta").silent(15'001), fate::dead, proof::earlier_boot},
        {"B06 shared: another machine", situation(old).shared().silent(75'000), fate::unknown},
        {"shared, past 75 s", situation(old).shared().silent(75'001), fate::dead, proof::silent},
    };
    check_rows(rows);
    auto self = ourselves();
    self.boot_id = "";
    const row ours_unknown[] = {{"B09 our boot unknown", situation(old).silent(15'001), fate::unknown}};
    check_rows(ours_unknown, self);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
