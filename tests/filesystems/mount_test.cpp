// Locks on a FUSE mount, as long as it answers: a shared filesystem, with hard links and without.
#include <asio/io_context.hpp>
#include <boost/test/unit_test.hpp>
#include <csignal>

#include "engine/asking.hpp"
#include "loop.hpp"
#include "support/child.hpp"

namespace {

using namespace support;
namespace asio = fslock::asio;
namespace ut = boost::unit_test;
using stalling::naming;

constexpr naming all_namings[] = {naming::links, naming::exclusive_renames, naming::neither};

void own(child::pipe_to_parent& parent, const std::filesystem::path& path) {
    const auto lock = fslock::acquire(path, quick());
    parent.say('o');
    live_on(parent);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(mounts)

BOOST_AUTO_TEST_CASE(a_lock_on_a_mount_comes_and_goes_without_a_trace, *ut::precondition(fuse_mounts)) {
    for (const auto how : all_namings) {
        const stalling_mount m(how);
        BOOST_TEST(obtainable(m / "x") == "");
        BOOST_TEST(m.names().empty());
        BOOST_TEST(m.count(stalling::call::link) != 0U, "hard links are what is tried first");
    }
}

BOOST_AUTO_TEST_CASE(no_file_is_kept_open_on_a_mount_while_a_lock_is_held, *ut::precondition(fuse_mounts)) {
    for (const auto how : all_namings) {
        const stalling_mount m(how);
        auto without_beats = minutes();
        without_beats.heartbeat_interval = 1h;
        auto lock = fslock::acquire(m / "x", without_beats);
        BOOST_TEST(m.open_files() == 0U);
        BOOST_TEST(m.names() == std::vector<std::string>{"x"}, boost::test_tools::per_element());
        const auto record = read_file(m.behind("x"));
        BOOST_TEST(field_of(record, "guard") == "");
        lock.release();
        BOOST_TEST(m.names().empty());
    }
}

BOOST_AUTO_TEST_CASE(a_lock_on_a_mount_is_kept_fresh, *ut::precondition(fuse_mounts)) {
    for (const auto how : all_namings) {
        const stalling_mount m(how);
        auto lock = fslock::acquire(m / "x", minutes());
        pulse beats(m.behind("x"));
        BOOST_TEST(eventually([&] { return beats.count() >= 3; }));
        BOOST_TEST(lock.verify());
        lock.release();
        BOOST_TEST(m.names().empty());
    }
}

BOOST_AUTO_TEST_CASE(a_lock_on_a_mount_goes_from_one_owner_to_the_next, *ut::precondition(fuse_mounts)) {
    for (const auto how : all_namings) {
        const stalling_mount m(how);
        const told t;
        request next, queued;
        asio::io_context io;
        auto first = fslock::acquire(m / "x", minutes());  // lives on another context
        fslock::async_acquire(io, m / "x", t.listening(minutes()), next.handler());
        fslock::async_acquire(io, m / "x", minutes(), queued.handler());
        BOOST_TEST(run_until(io, [&] { return t.has(fslock::event_kind::waiting); }));
        BOOST_TEST(!next.done());
        first.release();
        BOOST_TEST(run_until(io, [&] { return next.done(); }));
        BOOST_TEST(!queued.done());
        BOOST_TEST(next.lock.verify());
        next.lock.release();
        BOOST_TEST(run_until(io, [&] { return queued.done(); }));
        BOOST_TEST(queued.lock.verify());
        queued.lock.release();
        BOOST_TEST(m.names().empty());
    }
}

BOOST_AUTO_TEST_CASE(a_killed_owner_on_a_mount_is_taken_over,
                     *ut::precondition(fuse_mounts) * ut::precondition(threads_in_children)) {
    for (const auto how : all_namings) {
        const stalling_mount m(how);
        child owner([&](child::pipe_to_parent& parent) { own(parent, m / "x"); });
        BOOST_TEST_REQUIRE(owner.hear() == 'o');
        owner.kill_and_reap();
        BOOST_TEST(m.names() == std::vector<std::string>{"x"}, boost::test_tools::per_element());
        const told t;
        auto lock = fslock::try_acquire(m / "x", patience, t.listening(quick()));
        BOOST_TEST_REQUIRE(static_cast<bool>(lock));
        BOOST_TEST(lock.verify());
        BOOST_TEST(eventually([&] { return t.has(fslock::event_kind::reclaimed); }));
        lock.release();
        BOOST_TEST(m.names().empty());
    }
}

BOOST_AUTO_TEST_CASE(a_silent_owner_on_another_host_is_taken_over, *ut::precondition(fuse_mounts)) {
    const stalling_mount m;
    foreign_record().write(m.behind("x"), 2h);
    const told t;
    auto lock = fslock::try_acquire(m / "x", patience, t.listening(quick()));
    BOOST_TEST_REQUIRE(static_cast<bool>(lock));
    BOOST_TEST_REQUIRE(eventually([&] { return t.has(fslock::event_kind::reclaimed); }));
    BOOST_TEST((t.of(fslock::event_kind::reclaimed).front().proof == fslock::proof::silent));
    lock.release();
    BOOST_TEST(m.names().empty());
}

BOOST_AUTO_TEST_CASE(a_stopped_owner_on_a_mount_is_not_displaced,
                     *ut::precondition(fuse_mounts) * ut::precondition(threads_in_children)) {
    const stalling_mount m;
    child owner([&](child::pipe_to_parent& parent) { own(parent, m / "x"); });
    BOOST_TEST_REQUIRE(owner.hear() == 'o');
    owner.signal(SIGSTOP);
    BOOST_TEST(!fslock::try_acquire(m / "x", 500ms, minutes()));
    BOOST_TEST(m.names() == std::vector<std::string>{"x"}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
