// Situations of two processes that docs/cases.md names and that belong to no other file.
#include <boost/test/unit_test.hpp>

#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "fslock/fslock.hpp"
#include "support/child.hpp"
#include "support/directory.hpp"
#include "support/filesystem.hpp"

namespace {

using namespace std::chrono_literals;
using boost::unit_test::precondition;
using support::child;

constexpr auto patience = 60s;
constexpr auto again = "again";

fslock::options quick() {
    fslock::options o;
    o.heartbeat_interval = 50ms;
    o.stale_after = 200ms;
    o.foreign_stale_after = 400ms;
    o.foreign_confirm = 100ms;
    o.poll_interval = 10ms;
    return o;
}

fslock::options without_witness() {
    auto o = quick();
    o.witness = fslock::witness::off;
    return o;
}

/// Gets the lock and becomes this program anew, which gets it again.
int restart_with(const std::filesystem::path& lock, const fslock::options& o, const char* kind) {
    const child starting([&](child::pipe_to_parent&) {
        auto held = fslock::acquire(lock, o);
        ::execl("/proc/self/exe", "process_tests", "--run_test=process_cases/a_program_that_restarts_itself_gets_its_lock",
                "--log_level=nothing", "--report_level=no", "--", again, lock.c_str(), kind, nullptr);
    });
    return const_cast<child&>(starting).wait();
}

/// In the new program: ends it.
void go_on_after_restart() {
    const auto& program = boost::unit_test::framework::master_test_suite();
    if (program.argc != 4 || program.argv[1] != std::string(again)) return;
    const bool guarded = program.argv[3] == std::string("guarded");
    const auto lock = fslock::try_acquire(program.argv[2], patience, guarded ? quick() : without_witness());
    ::_exit(lock ? 0 : 1);
}

boost::test_tools::assertion_result namespaces(boost::unit_test::test_unit_id) {
    boost::test_tools::assertion_result r(
        support::run_program({"unshare", "--pid", "--fork", "--mount-proc", "true"}) == 0);
    if (!r) r.message() << "PID namespaces cannot be made here (unshare --pid)";
    return r;
}

/// Takes the lock as pid 1 of a PID namespace of its own, says 'o', is stopped when told so, and goes on until it
/// knows that it lost.
void own_and_be_stopped(child::pipe_to_parent& parent, const std::filesystem::path& lock_path) {
    if (::unshare(CLONE_NEWPID | CLONE_NEWNS) != 0) ::_exit(96);
    const pid_t first = ::fork();
    if (first == 0) {
        support::die_with_parent();
        (void)::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
        (void)::mount("proc", "/proc", "proc", 0, nullptr);
        auto lock = fslock::acquire(lock_path, without_witness());
        parent.say('o');
        while (lock.verify()) std::this_thread::sleep_for(1ms);
        fslock::error_code ec;
        lock.release(ec);
        parent.say(ec == fslock::errc::lost ? 'l' : 'o');
        for (;;) ::pause();
    }
    // The test does not know what number this process has outside: signals go through here.
    if (parent.hear() == 's') (void)::kill(first, SIGSTOP);
    parent.say('s');
    if (parent.hear() == 'c') (void)::kill(first, SIGCONT);
    for (;;) ::pause();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(process_cases)

BOOST_AUTO_TEST_CASE(a_program_that_restarts_itself_gets_its_lock) {  // A06
    go_on_after_restart();
    const support::directory d;
    BOOST_TEST(restart_with(d / "x", quick(), "guarded") == 0);
    BOOST_TEST(restart_with(d / "y", without_witness(), "unguarded") == 0);
}

BOOST_AUTO_TEST_CASE(who_takes_turn_after_turn_lets_others_in,
                     *precondition(support::local_filesystem)) {  // K02
    const support::directory d;
    child greedy([&](child::pipe_to_parent& parent) {
        for (bool told = false;; told = true) {
            const auto lock = fslock::acquire(d / "x");
            if (!told) parent.say('o');
        }
    });
    BOOST_TEST_REQUIRE(greedy.hear() == 'o');
    for (int i = 0; i < 20; ++i) BOOST_TEST(static_cast<bool>(fslock::try_acquire(d / "x", patience)));
}

BOOST_AUTO_TEST_CASE(two_that_wait_for_each_other_are_told_and_end_by_their_limits) {  // J09
    const support::directory d;
    const auto take_both = [&](const char* first, const char* second) {
        return [&d, first, second](child::pipe_to_parent& parent) {
            const auto one = fslock::acquire(d / first, quick());
            parent.say('o');
            (void)parent.hear();
            const bool both = static_cast<bool>(fslock::try_acquire(d / second, 300ms, quick()));
            parent.say(both ? 'b' : 't');
            (void)parent.hear();
        };
    };
    child a(take_both("a", "b"));
    child b(take_both("b", "a"));
    BOOST_TEST_REQUIRE((a.hear() == 'o' && b.hear() == 'o'));
    a.say('!');
    b.say('!');
    const auto holder = fslock::inspect(d / "b");
    BOOST_TEST((holder && holder->owner.pid == b.pid()));
    BOOST_TEST((a.hear() == 't' && b.hear() == 't'));
}

BOOST_AUTO_TEST_CASE(an_owner_that_was_stopped_for_too_long_learns_that_it_lost,
                     *precondition(namespaces)) {  // D07, F01
    const support::directory d;
    child owner([&](child::pipe_to_parent& parent) { own_and_be_stopped(parent, d / "x"); });
    BOOST_TEST_REQUIRE(owner.hear() == 'o');
    owner.say('s');
    BOOST_TEST_REQUIRE(owner.hear() == 's');
    auto next = fslock::try_acquire(d / "x", patience, quick());
    BOOST_TEST_REQUIRE(static_cast<bool>(next));
    owner.say('c');
    BOOST_TEST(owner.hear() == 'l');
    BOOST_TEST(next.verify());
}

BOOST_AUTO_TEST_SUITE_END()
