// What the first implementation tests of judging the owner of a record, one case for each of its tests (named
// behind the case). It judges by the clocks in the record; here silence is the age of the file by its
// filesystem's clock, and an owner that may live in another PID namespace has to be silent as well as gone.
#include <unistd.h>

#include <boost/test/unit_test.hpp>

#include "asking.hpp"
#include "crafted.hpp"
#include "fslock/fslock.hpp"

namespace {

using namespace support;
using fslock::event_kind;
using fslock::foreign_content;
using fslock::proof;

enum class outcome { left_alone, taken_over, disturbed };

std::ostream& operator<<(std::ostream& out, outcome o) {
    static constexpr const char* words[] = {"left alone", "taken over", "disturbed"};
    return out << words[static_cast<int>(o)];
}

/// What one attempt makes of `text`, last written `age` ago.
outcome attempt(const std::string& text, std::chrono::seconds age, const fslock::options& o = minutes(),
                milliseconds timeout = 0ms) {
    const directory d;
    const auto path = d / fresh_name();
    (void)fslock::try_acquire(path, patience);  // a directory that is known is not looked at elsewhere
    write_file(path, text);
    age_file(path, age);
    const auto before = picture_of(d.path());
    auto lock = fslock::try_acquire(path, timeout, o);
    if (!lock) return picture_of(d.path()) == before ? outcome::left_alone : outcome::disturbed;
    const bool ours = field_of(read_file(path), "pid") == std::to_string(::getpid()) && lock.verify();
    lock = {};
    return ours && d.empty() ? outcome::taken_over : outcome::disturbed;
}

outcome attempt(const crafted_record& r, std::chrono::seconds age, const fslock::options& o = minutes(),
                milliseconds timeout = 0ms) {
    return attempt(r.line(), age, o, timeout);
}

/// The same for one who waits until `kind` is told, and no longer.
outcome wait_for(const crafted_record& r, std::chrono::seconds age, const told& t, event_kind kind,
                 const fslock::options& o) {
    const directory d;
    r.write(d / "x", age);
    const auto before = picture_of(d.path());
    BOOST_TEST(wait_until_told(d / "x", t, kind, o) == "");
    // A thread that is at it when its context goes takes its temp back a moment later.
    const bool as_before = eventually([&] { return picture_of(d.path()) == before; });
    return as_before ? outcome::left_alone : outcome::disturbed;
}

bool reclaimed_for(const told& t, proof p) {
    return eventually([&] { return t.has(event_kind::reclaimed); }) &&
           t.of(event_kind::reclaimed)[0].proof == p;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(taking_over_as_the_first_implementation)

// dead_pid_lock_is_reclaimed
BOOST_AUTO_TEST_CASE(a_dead_pid_is_taken_over_once_its_record_was_silent) {
    told t;
    const auto o = t.listening(minutes());
    BOOST_TEST(attempt(seed_record(dead_pid), 5min, o, 50ms) == outcome::left_alone);
    BOOST_TEST(attempt(seed_record(dead_pid), 11min, o, patience) == outcome::taken_over);
    BOOST_TEST(reclaimed_for(t, proof::process_gone));
}

// the same, where the record says that its pid counts in our PID namespace
BOOST_AUTO_TEST_CASE(a_dead_pid_of_our_pid_namespace_is_taken_over_at_once,
                     *boost::unit_test::precondition(linux_facilities)) {
    told t;
    BOOST_TEST(attempt(peer_record(dead_pid), 0s, t.listening(minutes())) == outcome::taken_over);
    BOOST_TEST(reclaimed_for(t, proof::process_gone));
}

// zero_timeout_dead_pid_reclaim_acquires_after_removing_stale_file
BOOST_AUTO_TEST_CASE(one_attempt_is_enough_to_remove_a_dead_owners_record_and_get_the_lock) {
    BOOST_TEST(attempt(seed_record(dead_pid), 11min) == outcome::taken_over);
    BOOST_TEST(attempt(seed_record(dead_pid), 11min, minutes(), -5ms) == outcome::taken_over);
}

// stale_heartbeat_from_live_pid_blocks
BOOST_AUTO_TEST_CASE(an_old_heartbeat_of_a_living_process_is_reported_and_blocks) {
    child owner(live_on);
    auto o = minutes();
    o.stale_after = 20s;
    told t;
    const auto r = seed_record(owner.pid()).acquired_before(60s).beaten_before(60s);
    BOOST_TEST(wait_for(r, 60s, t, event_kind::stale_but_alive, o) == outcome::left_alone);
    const auto said = t.of(event_kind::stale_but_alive);
    BOOST_TEST(said.size() == 1U);
    BOOST_TEST(said[0].owner.pid == owner.pid());
    BOOST_TEST((said[0].proof == proof::process_alive));
    BOOST_TEST((said[0].age >= 60s));
}

// live_pid_with_wrong_start_time_is_reclaimed
BOOST_AUTO_TEST_CASE(a_pid_that_went_to_another_process_is_taken_over,
                     *boost::unit_test::precondition(linux_facilities)) {  // A01
    child other(live_on);
    const auto another_time = std::to_string(std::stoull(start_time_of(other.pid())) + 1);
    told t;
    const auto r = seed_record(other.pid()).set("process_start_time", another_time);
    BOOST_TEST(attempt(r, 5min, minutes(), 50ms) == outcome::left_alone);
    BOOST_TEST(attempt(r, 11min, t.listening(minutes())) == outcome::taken_over);
    BOOST_TEST(reclaimed_for(t, proof::process_reused));
    const auto of_our_namespace = peer_record(other.pid()).set("process_start_time", another_time);
    BOOST_TEST(attempt(of_our_namespace, 0s) == outcome::taken_over);
}

// live_pid_with_wrong_boot_id_is_reclaimed
BOOST_AUTO_TEST_CASE(a_record_of_another_boot_is_taken_over_once_it_was_silent,
                     *boost::unit_test::precondition(linux_facilities)) {  // A02, B06
    child owner(live_on);
    told t;
    const auto r = seed_record(owner.pid()).text("boot_id", "wrong-" + boot_id());
    BOOST_TEST(attempt(r, 5min, minutes(), 50ms) == outcome::left_alone);
    BOOST_TEST(attempt(r, 11min, t.listening(minutes())) == outcome::taken_over);
    BOOST_TEST(reclaimed_for(t, proof::earlier_boot));
}

// legacy_live_pid_lock_keeps_pid_only_liveness
BOOST_AUTO_TEST_CASE(a_pid_without_a_start_time_blocks_while_there_is_such_a_process) {  // A17
    child owner(live_on);
    const auto r = legacy_record(owner.pid()).acquired_before(20min).beaten_before(20min);
    BOOST_TEST(r.line().find("process_start_time") == std::string::npos);
    BOOST_TEST(r.line().find("boot_id") == std::string::npos);
    BOOST_TEST(attempt(r, 20min, minutes(), 80ms) == outcome::left_alone);
}

// the same, by the difference that nobody is believed for ever without a proof
BOOST_AUTO_TEST_CASE(a_pid_without_a_start_time_does_not_block_beyond_the_limit_of_other_hosts) {  // A17
    child owner(live_on);
    BOOST_TEST(attempt(legacy_record(owner.pid()), 2h) == outcome::taken_over);
    const auto quick_beater = legacy_record(owner.pid()).set("heartbeat_ms", "25");
    BOOST_TEST(attempt(quick_beater, 35min, minutes(), patience) == outcome::taken_over);
}

// legacy_dead_pid_lock_is_reclaimed
BOOST_AUTO_TEST_CASE(a_dead_pid_without_a_start_time_is_taken_over_once_its_record_was_silent) {
    BOOST_TEST(attempt(legacy_record(dead_pid), 5min, minutes(), 50ms) == outcome::left_alone);
    BOOST_TEST(attempt(legacy_record(dead_pid), 11min) == outcome::taken_over);
}

// healthy_live_owner_blocks
BOOST_AUTO_TEST_CASE(a_living_owner_blocks) {
    child owner(live_on);
    told t;
    const auto r = seed_record(owner.pid());
    BOOST_TEST(wait_for(r, 0s, t, event_kind::waiting, minutes()) == outcome::left_alone);
    BOOST_TEST(t.all().size() == 1U);
    BOOST_TEST(t.all()[0].owner.pid == owner.pid());
}

// malformed_lockfile_is_reclaimed; what no lock wrote is refused
BOOST_AUTO_TEST_CASE(a_damaged_record_is_taken_over_after_its_grace_and_other_content_never) {
    const std::string cut_off = R"({"pid":4711,"hostna)";
    told t;
    BOOST_TEST(attempt(cut_off, 5min, minutes(), 50ms) == outcome::left_alone);
    BOOST_TEST(attempt(cut_off, 11min, t.listening(minutes())) == outcome::taken_over);
    BOOST_TEST(reclaimed_for(t, proof::malformed_unchanged));
    BOOST_CHECK_EXCEPTION((void)attempt("not valid json", 2h), fslock::system_error,
                          [](const auto& e) { return e.code() == fslock::errc::not_a_lock_file; });
}

// malformed_lockfile_is_reclaimed, as it was
BOOST_AUTO_TEST_CASE(other_content_is_taken_over_after_its_grace_where_the_user_asks_for_it) {
    auto o = minutes();
    o.foreign_content = foreign_content::reclaim;
    BOOST_TEST(attempt("not valid json", 5min, o, 50ms) == outcome::left_alone);
    BOOST_TEST(attempt("not valid json", 11min, o) == outcome::taken_over);
}

// cross_host_lock_is_not_stolen_before_extended_stale_threshold
BOOST_AUTO_TEST_CASE(
    another_hosts_lock_is_left_alone_below_its_limit_whatever_its_own_clock_says) {  // D01, D03
    for (const milliseconds by_its_clock : {milliseconds(0ms), milliseconds(24h), milliseconds(-24h)}) {
        auto r = foreign_record().acquired_before(by_its_clock).beaten_before(by_its_clock);
        BOOST_TEST(attempt(r, 20min, minutes(), 80ms) == outcome::left_alone);
        r.set("pid", std::to_string(dead_pid));  // the absence of its pid here is no proof of death there
        BOOST_TEST(attempt(r, 20min, minutes(), 80ms) == outcome::left_alone);
    }
}

// stale_cross_host_lock_is_reclaimed_after_extended_threshold
BOOST_AUTO_TEST_CASE(another_hosts_lock_is_taken_over_once_its_file_was_silent) {  // B04
    child owner(live_on);  // the same pid here is no proof of life there
    for (const milliseconds by_its_clock : {milliseconds(0ms), milliseconds(24h), milliseconds(-24h)}) {
        told t;
        const auto r = foreign_record()
                           .set("pid", std::to_string(owner.pid()))
                           .acquired_before(by_its_clock)
                           .beaten_before(by_its_clock);
        BOOST_TEST(attempt(r, 35min, t.listening(minutes()), patience) == outcome::taken_over);
        BOOST_TEST(reclaimed_for(t, proof::silent));
        BOOST_TEST(attempt(r, 2h) == outcome::taken_over);
    }
}

// live_owner_over_10min_warns_but_blocks
BOOST_AUTO_TEST_CASE(an_owner_of_eleven_minutes_is_reported_once_and_blocks) {
    child owner(live_on);
    told t;
    const auto r = seed_record(owner.pid()).acquired_before(11min);
    BOOST_TEST(wait_for(r, 0s, t, event_kind::held_long, minutes()) == outcome::left_alone);
    const auto said = t.of(event_kind::held_long);
    BOOST_TEST(said.size() == 1U);
    BOOST_TEST(said[0].owner.pid == owner.pid());
    BOOST_TEST((said[0].age >= 11min));
    BOOST_TEST(!t.has(event_kind::stale_but_alive));
}

BOOST_AUTO_TEST_SUITE_END()
