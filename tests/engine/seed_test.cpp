// What the first implementation tests of a lock that is free or held, one case for each of its tests (named
// behind the case) as far as it is about acquiring, beating and releasing. Here and in other tests "the seed" is that
// implementation, a "seed peer" a process that runs it, and a "seed record" has its fields only (docs/protocol.md).
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <asio/io_context.hpp>
#include <atomic>
#include <barrier>
#include <boost/test/unit_test.hpp>
#include <csignal>
#include <thread>

#include "asking.hpp"
#include "crafted.hpp"
#include "fslock/fslock.hpp"
#include "support/run_until.hpp"

namespace {

using namespace support;
namespace asio = fslock::asio;
using fslock::event_kind;
using fslock::lock_guard;
using fslock::options;

ino_t inode_of(const std::filesystem::path& p) {
    struct stat s {};
    BOOST_REQUIRE(::lstat(p.c_str(), &s) == 0);
    return s.st_ino;
}

/// The lock at `p`, on `io`, whose handlers run for as long as it takes and no longer.
lock_guard acquire_on(asio::io_context& io, const std::filesystem::path& p, const options& o) {
    lock_guard got;
    fslock::async_acquire(io, p, o, [&](fslock::error_code ec, lock_guard lock) {
        BOOST_TEST(!ec);
        got = std::move(lock);
        io.stop();
    });
    io.run_for(patience);
    io.restart();
    return got;
}

bool beaten_since(const std::filesystem::path& p, const std::string& was) {
    const auto now = field_of(read_file(p), "heartbeat_at_ms");
    return now.size() == was.size() && now > was;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(as_the_first_implementation)

// lock_operation_trace_lines_are_debug_not_info
BOOST_AUTO_TEST_CASE(an_undisturbed_cycle_reports_nothing) {
    const directory d;
    told t;
    asio::io_context io;
    auto lock = acquire_on(io, d / "x", t.listening(minutes()));
    BOOST_TEST_REQUIRE(static_cast<bool>(lock));
    const auto first = field_of(read_file(d / "x"), "heartbeat_at_ms");
    BOOST_TEST(run_until(io, [&] { return beaten_since(d / "x", first); }));
    lock.release();
    io.restart();
    io.run_for(patience);  // whatever was to be reported is delivered
    BOOST_TEST(io.stopped());
    BOOST_TEST(t.all().empty());
}

// acquire_creates_lockfile_and_unlocks_on_drop
BOOST_AUTO_TEST_CASE(acquiring_writes_a_record_and_dropping_the_guard_removes_it) {
    const directory d;
    const auto umask_before = ::umask(0);
    {
        const auto lock = fslock::acquire(d / "x", minutes());
        const auto line = read_file(d / "x");
        BOOST_TEST(field_of(line, "pid") == std::to_string(::getpid()));
        BOOST_TEST(field_of(line, "hostname").starts_with('"' + nodename()));
        BOOST_TEST(field_of(line, "writer_epoch") == '"' + std::string(lock.writer_epoch()) + '"');
        BOOST_TEST(field_of(line, "created_at_ms").size() == 13U);
        BOOST_TEST(line.ends_with("}\n"));
        const auto mode = std::filesystem::status(d / "x").permissions();
        BOOST_TEST((mode == (std::filesystem::perms::owner_read | std::filesystem::perms::owner_write)));
        BOOST_TEST(lock.path() == d / "x");
    }
    (void)::umask(umask_before);
    BOOST_TEST(d.empty());
}

// permission_denied_is_treated_as_transient_create_contention; here it is not contention, and ends the wait
BOOST_AUTO_TEST_CASE(a_denied_permission_ends_the_wait_at_once,
                     *boost::unit_test::precondition(ordinary_user)) {
    const directory d;
    (void)::chmod(d.path().c_str(), 0555);
    BOOST_TEST(without_privileges([&] { return refused(d.path(), d / "x", os_error(EACCES)); }) == "");
    (void)::chmod(d.path().c_str(), 0755);
    BOOST_TEST(obtainable(d / "x") == "");
}

// unrelated_io_errors_are_not_treated_as_contention
BOOST_AUTO_TEST_CASE(an_error_that_is_no_contention_ends_the_wait_at_once) {
    const directory d;
    BOOST_TEST(refused(d.path(), d / "none" / "x", os_error(ENOENT)) == "");
}

// windows_sharing_violation_is_treated_as_transient_create_contention
BOOST_AUTO_TEST_CASE(creating_and_removing_one_name_at_the_same_time_is_never_an_error) {
    const directory d;
    constexpr int rounds = 200;
    std::atomic<int> obtained{0};
    std::atomic<int> errors{0};
    const auto work = [&] {
        for (int i = 0; i < rounds; ++i) {
            fslock::error_code ec;
            const auto lock = fslock::try_acquire(d / "x", patience, minutes(), ec);
            if (ec) ++errors;
            if (lock) ++obtained;
        }
    };
    { std::jthread others[3] = {std::jthread(work), std::jthread(work), std::jthread(work)}; }
    BOOST_TEST(errors == 0);
    BOOST_TEST(obtained == 3 * rounds);
    BOOST_TEST(d.empty());
}

// try_acquire_once_never_waits_behind_live_owner
BOOST_AUTO_TEST_CASE(one_attempt_arms_no_timer_behind_a_live_owner) {
    const directory d;
    child owner(live_on);
    seed_record(owner.pid()).write(d / "x");
    const auto before = picture_of(d.path());
    (void)fslock::try_acquire(d / "y", patience);  // a directory that is known is not looked at elsewhere
    asio::io_context io;
    int called = 0;
    fslock::async_try_acquire_once(io, d / "x", minutes(), [&](fslock::error_code ec, lock_guard lock) {
        BOOST_TEST(!ec);
        BOOST_TEST(!lock);
        ++called;
    });
    io.poll();  // runs what is ready, and waits for nothing
    BOOST_TEST(called == 1);
    BOOST_TEST(picture_of(d.path()) == before, boost::test_tools::per_element());
}

// acquire_serializes_concurrent_callers
BOOST_AUTO_TEST_CASE(concurrent_callers_come_one_after_the_other) {
    const directory d;
    std::barrier together(3);
    std::atomic<int> inside{0};
    std::atomic<int> overlaps{0};
    std::atomic<int> entered{0};
    const auto work = [&] {
        together.arrive_and_wait();
        const auto lock = fslock::try_acquire(d / "x", patience, minutes());
        if (!lock) return;
        if (++inside != 1) ++overlaps;
        ++entered;
        for (int i = 0; i < 1000; ++i) std::this_thread::yield();
        --inside;
    };
    {
        std::jthread callers[2] = {std::jthread(work), std::jthread(work)};
        together.arrive_and_wait();
    }
    BOOST_TEST(entered == 2);
    BOOST_TEST(overlaps == 0);
    BOOST_TEST(d.empty());
}

// failed_atomic_replacement_preserves_existing_destination; here nothing is ever replaced
BOOST_AUTO_TEST_CASE(an_attempt_in_vain_leaves_the_record_of_the_owner_as_it_was) {
    const directory d;
    child owner(live_on);
    seed_record(owner.pid()).write(d / "x");
    const auto before = picture_of(d.path());
    for (int i = 0; i < 20; ++i) BOOST_TEST(!fslock::try_acquire_once(d / "x", minutes()));
    BOOST_TEST(!fslock::try_acquire(d / "x", 50ms, minutes()));
    BOOST_TEST(picture_of(d.path()) == before, boost::test_tools::per_element());
}

// heartbeat_updates_lockfile_timestamp
BOOST_AUTO_TEST_CASE(a_heartbeat_changes_its_own_field_in_place_and_nothing_else) {
    const directory d;
    const auto lock = fslock::acquire(d / "x", minutes());
    const auto first = read_file(d / "x");
    const auto inode = inode_of(d / "x");
    const auto stamp = field_of(first, "heartbeat_at_ms");
    BOOST_TEST(eventually([&] { return beaten_since(d / "x", stamp); }));
    auto later = read_file(d / "x");
    const auto new_stamp = field_of(later, "heartbeat_at_ms");
    BOOST_TEST_REQUIRE(new_stamp.size() == stamp.size());
    later.replace(later.find("\"heartbeat_at_ms\":" + new_stamp) + 18, stamp.size(), stamp);
    BOOST_TEST(later == first);
    BOOST_TEST(inode_of(d / "x") == inode);
}

// drop_stops_heartbeat_thread
BOOST_AUTO_TEST_CASE(no_heartbeat_comes_after_the_guard_is_gone) {
    const directory d;
    asio::io_context io;
    auto o = minutes();
    o.heartbeat_interval = 1ms;
    {
        const auto lock = acquire_on(io, d / "x", o);
        const auto first = field_of(read_file(d / "x"), "heartbeat_at_ms");
        BOOST_TEST(run_until(io, [&] { return beaten_since(d / "x", first); }));
    }
    io.restart();
    io.run_for(patience);  // returns when nothing is left to be done, not when the time is up
    BOOST_TEST(io.stopped());
    BOOST_TEST(d.empty());
}

namespace {

/// In a child that may not write for a while: what became of its heartbeats, in words.
std::string beat_without_being_able_to_write(const std::filesystem::path& p) {
    (void)std::signal(SIGXFSZ, SIG_IGN);
    told t;
    asio::io_context io;
    const auto lock = acquire_on(io, p, t.listening(minutes()));
    rlimit limit{};
    (void)::getrlimit(RLIMIT_FSIZE, &limit);
    const auto allowed = std::exchange(limit.rlim_cur, 0);
    (void)::setrlimit(RLIMIT_FSIZE, &limit);
    if (!run_until(io, [&] { return t.has(event_kind::at_risk); })) return "never at risk";
    if (t.of(event_kind::beat_failed).size() != 1) return "not reported once";
    if (t.of(event_kind::beat_failed)[0].error != os_error(EFBIG)) return "reported with another error";
    limit.rlim_cur = allowed;
    (void)::setrlimit(RLIMIT_FSIZE, &limit);
    if (!run_until(io, [&] { return t.has(event_kind::beat_recovered); })) return "never recovered";
    if (t.of(event_kind::beat_recovered)[0].count < 3) return "gave up meanwhile";
    return t.has(event_kind::lost) || lock.lost() ? "lost" : "";
}

}  // namespace

// heartbeat_error_classification_terminal_vs_transient, the second half
BOOST_AUTO_TEST_CASE(a_heartbeat_that_cannot_be_written_is_tried_again,
                     *boost::unit_test::precondition(threads_in_children)) {
    const directory d;
    BOOST_TEST(in_child([&] { return beat_without_being_able_to_write(d / "x"); }) == "");
}

// heartbeat_error_classification_terminal_vs_transient, the first half
BOOST_AUTO_TEST_CASE(a_heartbeat_without_its_record_is_the_last) {
    for (const auto witness : {fslock::witness::automatic, fslock::witness::off}) {
        for (const bool replaced : {false, true}) {
            const directory d;
            told t;
            asio::io_context io;
            auto o = minutes();
            o.witness = witness;
            auto lock = acquire_on(io, d / "x", t.listening(o));
            std::filesystem::remove(d / "x");
            if (replaced) seed_record(::getpid()).write(d / "x");
            const auto before = picture_of(d.path());
            BOOST_TEST(run_until(io, [&] { return t.has(event_kind::lost); }));
            io.restart();
            io.run_for(patience);
            BOOST_TEST(io.stopped(), "it still beats");
            BOOST_TEST(lock.lost());
            BOOST_TEST(!lock.verify());
            fslock::error_code ec;
            lock.release(ec);
            BOOST_TEST((ec == fslock::errc::lost));
            BOOST_TEST(picture_of(d.path()) == before, boost::test_tools::per_element());
        }
    }
}

namespace {

/// A record that is garbage for some heartbeats, and then back in its place.
void check_survival(fslock::witness witness) {
    const directory d;
    told t;
    asio::io_context io;
    auto o = minutes();
    o.witness = witness;
    auto lock = acquire_on(io, d / "x", t.listening(o));
    auto line = read_file(d / "x");
    write_file(d / "x", "{ not valid json");
    const auto end = std::chrono::steady_clock::now() + 4 * o.heartbeat_interval;
    while (std::chrono::steady_clock::now() < end) {
        io.restart();
        (void)io.run_one_until(end);
    }
    BOOST_TEST(!t.has(event_kind::lost));
    const auto stamp = field_of(line, "heartbeat_at_ms");
    const std::string old_stamp = "1000000000000";
    line.replace(line.find(stamp, line.find("\"heartbeat_at_ms\"")), stamp.size(), old_stamp);
    write_file(d / "aside", line);
    std::filesystem::rename(d / "aside", d / "x");
    BOOST_TEST(run_until(io, [&] { return t.has(event_kind::lost) || beaten_since(d / "x", old_stamp); }));
    BOOST_TEST(!lock.lost());
    fslock::error_code ec;
    lock.release(ec);
    BOOST_TEST(!ec);
    BOOST_TEST(d.empty());
}

}  // namespace

// heartbeat_survives_transient_malformed_and_recovers
BOOST_AUTO_TEST_CASE(a_heartbeat_survives_a_record_that_is_damaged_for_a_while) {
    check_survival(fslock::witness::automatic);
}

// heartbeat_survives_transient_malformed_and_recovers, where the record is all that an owner has
BOOST_AUTO_TEST_CASE(a_heartbeat_without_a_witness_survives_a_record_that_is_damaged_for_a_while) {
    check_survival(fslock::witness::off);
}

BOOST_AUTO_TEST_SUITE_END()
