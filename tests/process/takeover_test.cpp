// What happens to a lock when its owner dies, stops, becomes another program, or is somewhere else.
#include <boost/test/unit_test.hpp>

#include <sched.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "fslock/fslock.hpp"
#include "support/child.hpp"
#include "support/directory.hpp"
#include "support/filesystem.hpp"

namespace {

using namespace std::chrono_literals;
using fslock::lock_guard;
using fslock::options;
using support::child;

constexpr auto patience = 60s;

/// Takes over as soon as it may; every limit is far below what a test waits for.
options quick() {
    options o;
    o.heartbeat_interval = 50ms;
    o.stale_after = 200ms;
    o.foreign_stale_after = 400ms;
    o.foreign_confirm = 100ms;
    o.malformed_grace = 100ms;
    o.poll_interval = 10ms;
    return o;
}

/// A child that owns the lock, says so, and then does `next`.
std::function<void(child::pipe_to_parent&)> owner_of(const std::filesystem::path& path,
                                                     std::function<void(child::pipe_to_parent&)> next) {
    return [path, next = std::move(next)](child::pipe_to_parent& parent) {
        const auto lock = fslock::acquire(path, quick());
        parent.say('o');
        next(parent);
    };
}

void for_ever(child::pipe_to_parent&) {
    for (;;) ::pause();
}

/// Collects what a waiter is told.
struct told {
    std::vector<fslock::event> events;
    std::mutex mutex;

    options listening(options o) {
        o.on_event = [this](const fslock::event& e) {
            const std::lock_guard lock(mutex);
            events.push_back(e);
        };
        return o;
    }
    bool has(fslock::event_kind kind, fslock::proof proof) {
        const std::lock_guard lock(mutex);
        return std::any_of(events.begin(), events.end(),
                           [&](const auto& e) { return e.kind == kind && e.proof == proof; });
    }
};

bool eventually(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + patience;
    while (std::chrono::steady_clock::now() < end) {
        if (condition()) return true;
        std::this_thread::sleep_for(1ms);
    }
    return false;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_killed_owner_is_taken_over_with_the_kernel_as_its_witness,
                     *boost::unit_test::precondition(support::local_filesystem)) {  // A18, I07
    const support::directory d;
    child owner(owner_of(d / "x", for_ever));
    BOOST_TEST_REQUIRE(owner.hear() == 'o');
    owner.kill_and_reap();
    BOOST_TEST(std::filesystem::exists(d / "x"));
    told t;
    auto lock = fslock::try_acquire(d / "x", patience, t.listening(quick()));
    BOOST_TEST_REQUIRE(static_cast<bool>(lock));
    BOOST_TEST(eventually([&] { return t.has(fslock::event_kind::reclaimed, fslock::proof::witness_free); }));
    lock.release();
    BOOST_TEST(d.empty());
}

BOOST_AUTO_TEST_CASE(one_attempt_without_waiting_takes_a_dead_owner_over) {
    const support::directory d;
    child owner(owner_of(d / "x", for_ever));
    BOOST_TEST_REQUIRE(owner.hear() == 'o');
    owner.kill_and_reap();
    BOOST_TEST(static_cast<bool>(fslock::try_acquire_once(d / "x", quick())));
}

BOOST_AUTO_TEST_CASE(a_killed_owner_that_nobody_reaps_is_taken_over) {  // A04
    const support::directory d;
    child owner(owner_of(d / "x", for_ever));
    BOOST_TEST_REQUIRE(owner.hear() == 'o');
    owner.signal(SIGKILL);
    BOOST_TEST(static_cast<bool>(fslock::try_acquire(d / "x", patience, quick())));
}

BOOST_AUTO_TEST_CASE(an_owner_whose_first_thread_ended_lives) {  // A04, the other way round
    const support::directory d;
    child owner([&](child::pipe_to_parent& parent) {
        auto lock = fslock::acquire(d / "x", quick());
        std::thread([&] {
            std::this_thread::sleep_for(100ms);
            parent.say('o');
            for (;;) ::pause();
        }).detach();
        (void)::syscall(SYS_exit, 0);  // this thread only, without unwinding
    });
    BOOST_TEST_REQUIRE(owner.hear() == 'o');
    BOOST_TEST(!fslock::try_acquire(d / "x", 1s, quick()));
}

BOOST_AUTO_TEST_CASE(however_an_owner_ends_the_next_one_needs_no_person) {  // I07
    const std::function<void(child::pipe_to_parent&)> ends[] = {
        [](child::pipe_to_parent&) { ::_exit(3); },
        [](child::pipe_to_parent&) { std::quick_exit(0); },
        [](child::pipe_to_parent&) { (void)::raise(SIGTERM); },
        [](child::pipe_to_parent&) {
            (void)::signal(SIGABRT, SIG_DFL);
            std::abort();
        },
    };
    for (const auto& end : ends) {
        const support::directory d;
        child owner(owner_of(d / "x", end));
        BOOST_TEST_REQUIRE(owner.hear() == 'o');
        (void)owner.wait();
        BOOST_TEST(static_cast<bool>(fslock::try_acquire(d / "x", patience, quick())));
    }
}

BOOST_AUTO_TEST_CASE(an_owner_that_became_another_program_is_taken_over,
                     *boost::unit_test::precondition(support::local_filesystem)) {  // A06, I05
    const support::directory d;
    child owner(owner_of(d / "x", [](child::pipe_to_parent&) { ::execlp("sleep", "sleep", "600", nullptr); }));
    BOOST_TEST_REQUIRE(owner.hear() == 'o');
    const auto next = fslock::try_acquire(d / "x", patience, quick());
    BOOST_TEST(static_cast<bool>(next));
    BOOST_TEST(::kill(owner.pid(), 0) == 0, "the other program still runs");
}

BOOST_AUTO_TEST_CASE(a_stopped_owner_is_not_displaced_however_long_it_stands) {  // A19, D10, I06
    const support::directory d;
    child owner(owner_of(d / "x", [](child::pipe_to_parent& parent) {
        (void)parent.hear();
        parent.say('a');
        for_ever(parent);
    }));
    BOOST_TEST_REQUIRE(owner.hear() == 'o');
    owner.signal(SIGSTOP);
    told t;
    auto o = t.listening(quick());
    o.events = fslock::events::off;  // whoever looks often could be wrong often
    BOOST_TEST(!fslock::try_acquire(d / "x", 3s, o));
    const auto proof =
        support::on_local_filesystem() ? fslock::proof::witness_held : fslock::proof::process_alive;
    BOOST_TEST(t.has(fslock::event_kind::stale_but_alive, proof));
    const auto info = fslock::inspect(d / "x");
    BOOST_TEST_REQUIRE(info.has_value());
    BOOST_TEST((info->verdict == fslock::liveness::alive));
    BOOST_TEST(info->owner.pid == owner.pid());
    owner.signal(SIGCONT);
    owner.say('?');
    BOOST_TEST(owner.hear() == 'a');
    BOOST_TEST(!fslock::try_acquire_once(d / "x", quick()));
}

BOOST_AUTO_TEST_CASE(a_forked_child_neither_owns_nor_keeps_its_dead_parents_lock,
                     *boost::unit_test::precondition(support::forks_of_threads)) {  // I01, I03
    const support::directory d;
    child parent_of_owner([&](child::pipe_to_parent& up) {
        auto lock = fslock::acquire(d / "x", quick());
        const pid_t grandchild = ::fork();
        if (grandchild == 0) {
            if (lock.verify()) ::_exit(1);
            lock = lock_guard();  // as at the end of a scope: gives nothing back
            up.say(std::filesystem::exists(d / "x") ? 'k' : 'g');
            (void)up.hear();  // outlives the owner, until the test ends
            ::_exit(0);
        }
        up.say(lock.verify() ? 'o' : 'l');
        for_ever(up);
    });
    const char first = parent_of_owner.hear();
    const char second = parent_of_owner.hear();
    BOOST_TEST(((first == 'o' && second == 'k') || (first == 'k' && second == 'o')));
    BOOST_TEST(!fslock::try_acquire(d / "x", 300ms, quick()));
    parent_of_owner.kill_and_reap();
    BOOST_TEST(static_cast<bool>(fslock::try_acquire(d / "x", patience, quick())));
}

BOOST_AUTO_TEST_CASE(a_child_that_uses_the_number_of_an_inherited_descriptor_keeps_its_own_lock,
                     *boost::unit_test::precondition(support::forks_of_threads)) {
    const support::directory d;
    child owner([&](child::pipe_to_parent& up) {
        auto inherited = fslock::acquire(d / "a", quick());
        const pid_t grandchild = ::fork();
        if (grandchild != 0) for_ever(up);
        support::die_with_parent();
        auto own = fslock::acquire(d / "b", quick());  // gets the descriptor that `inherited` had
        inherited = lock_guard();
        up.say(own.verify() ? 'o' : 'l');
        for_ever(up);
    });
    BOOST_TEST(owner.hear() == 'o');
    BOOST_TEST(!fslock::try_acquire(d / "b", 500ms, quick()));
}

namespace {

/// A PID namespace of its own, with its own /proc, on the same host.
boost::test_tools::assertion_result namespaces(boost::unit_test::test_unit_id) {
    const bool possible =
        support::run_program({"unshare", "--pid", "--fork", "--mount-proc", "true"}) == 0;
    boost::test_tools::assertion_result r(possible);
    if (!possible) r.message() << "PID namespaces cannot be made here (unshare --pid)";
    return r;
}

/// Runs `body` as pid 1 of a new PID namespace.
std::function<void(child::pipe_to_parent&)> in_another_pid_namespace(
    std::function<void(child::pipe_to_parent&)> body) {
    return [body = std::move(body)](child::pipe_to_parent& parent) {
        if (::unshare(CLONE_NEWPID | CLONE_NEWNS) != 0) ::_exit(96);
        const pid_t first = ::fork();
        if (first == 0) {
            support::die_with_parent();
            (void)::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
            (void)::mount("proc", "/proc", "proc", 0, nullptr);
            body(parent);
            ::_exit(0);
        }
        int status = 0;
        (void)::waitpid(first, &status, 0);
        ::_exit(0);
    };
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_live_owner_in_another_pid_namespace_is_not_displaced,
                     *boost::unit_test::precondition(namespaces)) {  // B01, K07
    for (const auto proof_of_life : {fslock::witness::automatic, fslock::witness::off}) {
        const support::directory d;
        child owner(in_another_pid_namespace([&](child::pipe_to_parent& parent) {
            auto o = quick();
            o.witness = proof_of_life;
            const auto lock = fslock::acquire(d / "x", o);
            parent.say(::getpid() == 1 && lock.path() == d / "x" ? 'o' : 'n');
            for_ever(parent);
        }));
        BOOST_TEST_REQUIRE(owner.hear() == 'o');
        // Its pid is not ours to judge by, and an owner on a busy machine may be silent for a while.
        auto waiter = quick();
        waiter.foreign_stale_after = 60s;
        BOOST_TEST(!fslock::try_acquire(d / "x", 2s, waiter));
    }
}

BOOST_AUTO_TEST_CASE(a_dead_owner_in_another_pid_namespace_is_taken_over,
                     *boost::unit_test::precondition(namespaces)) {  // B04
    for (const auto proof_of_life : {fslock::witness::automatic, fslock::witness::off}) {
        const support::directory d;
        child owner(in_another_pid_namespace([&](child::pipe_to_parent& parent) {
            auto o = quick();
            o.witness = proof_of_life;
            const auto lock = fslock::acquire(d / "x", o);
            parent.say('o');
            (void)::raise(SIGKILL);  // pid 1 survives this: end otherwise
            ::_exit(0);
        }));
        BOOST_TEST_REQUIRE(owner.hear() == 'o');
        (void)owner.wait();
        BOOST_TEST(static_cast<bool>(fslock::try_acquire(d / "x", patience, quick())));
    }
}
