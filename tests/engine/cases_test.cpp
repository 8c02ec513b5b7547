// Single situations that docs/cases.md names and that belong to no other file: who an owner is, what a look sees
// while it beats, what stands beside a lock.
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <asio/io_context.hpp>
#include <asio/signal_set.hpp>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <csignal>
#include <thread>

#include "asking.hpp"
#include "crafted.hpp"

namespace {

using namespace support;
namespace asio = fslock::asio;
using boost::unit_test::precondition;
using fslock::lock_guard;
using std::filesystem::path;

/// Options with beats as often as there can be.
fslock::options beating() {
    auto o = minutes();
    o.heartbeat_interval = 1ms;
    return o;
}

bool had_within_patience(const path& p) { return static_cast<bool>(fslock::try_acquire(p, patience, minutes())); }
bool blocked(const path& p) { return !fslock::try_acquire(p, 100ms, minutes()); }

long nanoseconds_of(std::string_view epoch) { return std::stol(std::string(epoch.substr(epoch.find('-') + 1))); }

/// In a mount namespace of its own, with an empty directory in place of `at`.
std::string with_nothing_at(const char* at, const told_in_words& body) {
    return in_child([&] {
        const bool mounted = ::unshare(CLONE_NEWNS) == 0 &&
                             ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                             ::mount("none", at, "tmpfs", 0, nullptr) == 0;
        return mounted ? body() : std::string("cannot mount");
    });
}

timespec modified(const path& p) {
    struct stat facts {};
    BOOST_TEST_REQUIRE(::stat(p.c_str(), &facts) == 0);
    return facts.st_mtim;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(cases)

// ---- who an owner is ------------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(the_number_of_a_thread_is_no_owner, *precondition(linux_facilities)) {  // A03
    const directory d;
    std::atomic<pid_t> id{0};
    std::atomic<bool> stop{false};
    std::thread other([&] {
        id = static_cast<pid_t>(::syscall(SYS_gettid));
        stop.wait(false);
    });
    BOOST_TEST(eventually([&] { return id != 0; }));
    peer_record(id).write(d / "x");
    BOOST_TEST(had_within_patience(d / "x"));
    stop = true;
    stop.notify_all();
    other.join();
}

BOOST_AUTO_TEST_CASE(the_start_time_in_a_record_is_the_kernels_and_stays,
                     *precondition(linux_facilities)) {  // A07, A08, A10, A11
    const directory d;
    const auto recorded = [&] {
        const auto lock = fslock::acquire(d / "x", minutes());
        return field_of(read_file(d / "x"), "process_start_time");
    };
    const auto ticks = start_time_of(::getpid());
    BOOST_TEST(recorded() == ticks);
    const std::size_t size = std::size_t{1} << 30;
    void* const much = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    BOOST_TEST(recorded() == ticks);
    (void)::munmap(much, size);
    for (int i = 0; i < 100; ++i) BOOST_TEST(recorded() == ticks);
    // Who reads it anew reads the same: else every look of another process would take us for dead.
    peer_record(::getppid()).write(d / "y", 2h);
    for (int i = 0; i < 100; ++i) BOOST_TEST(!fslock::try_acquire_once(d / "y", minutes()));
}

BOOST_AUTO_TEST_CASE(an_owner_whom_we_may_not_signal_lives_until_it_is_gone,
                     *precondition(linux_facilities) * precondition(two_users)) {  // A13
    const directory d;
    (void)::chmod(d.path().c_str(), 0777);
    child owner(live_on);
    peer_record(owner.pid()).write(d / "x", 2h);
    (void)::chmod((d / "x").c_str(), 0644);
    BOOST_TEST(without_privileges([&] { return blocked(d / "x") ? "" : "stolen"; }) == "");
    owner.kill_and_reap();
    BOOST_TEST(without_privileges([&] { return had_within_patience(d / "x") ? "" : "not taken over"; }) == "");
}

BOOST_AUTO_TEST_CASE(without_proc_nobody_is_taken_for_dead_and_locks_are_had,
                     *precondition(linux_facilities) * precondition(mounts)) {  // A15
    const directory d;
    child owner(live_on);
    peer_record(owner.pid()).write(d / "peer", 20min);
    seed_record(owner.pid()).write(d / "seed", 20min);
    const auto words = with_nothing_at("/proc", [&] {
        std::string problems = obtainable(d / "x");
        const auto own = fslock::acquire(d / "own");
        if (read_file(d / "own").find("process_start_time") != std::string::npos) problems += "a start time\n";
        for (const auto* const name : {"peer", "seed"})
            if (!blocked(d / name)) problems += std::string(name) + " was stolen\n";
        return problems;
    });
    BOOST_TEST(words == "");
}

BOOST_AUTO_TEST_CASE(without_a_boot_id_nobody_is_taken_for_dead_and_locks_are_had,
                     *precondition(linux_facilities) * precondition(mounts)) {  // B09
    const directory d;
    child owner(live_on);
    peer_record(owner.pid()).write(d / "peer", 20min);
    peer_record(owner.pid()).without("boot_id").write(d / "neither", 20min);
    const auto words = with_nothing_at("/proc/sys/kernel/random", [&] {
        std::string problems = obtainable(d / "x");
        const auto own = fslock::acquire(d / "own");
        if (read_file(d / "own").find("boot_id") != std::string::npos) problems += "a boot id\n";
        for (const auto* const name : {"peer", "neither"})
            if (!blocked(d / name)) problems += std::string(name) + " was stolen\n";
        return problems;
    });
    BOOST_TEST(words == "");
}

BOOST_AUTO_TEST_CASE(no_network_is_asked_for_the_name_of_the_host, *precondition(mounts)) {  // B12
    const directory d;
    const auto words = in_child([&] {
        if (::unshare(CLONE_NEWNET) != 0) return std::string("unshare");
        const auto began = std::chrono::steady_clock::now();
        const auto lock = fslock::acquire(d / "x");
        if (std::chrono::steady_clock::now() - began > 4s) return std::string("it took as long as a resolver");
        return field_of(read_file(d / "x"), "hostname").starts_with('"' + nodename()) ? std::string() : "another name";
    });
    BOOST_TEST(words == "");
}

BOOST_AUTO_TEST_CASE(our_own_pid_on_another_host_is_not_us) {  // B13
    const directory d;
    foreign_record().set("pid", std::to_string(::getpid())).write(d / "x");
    const auto before = picture_of(d.path());
    BOOST_TEST(blocked(d / "x"));
    BOOST_TEST(picture_of(d.path()) == before, boost::test_tools::per_element());
}

// ---- looks, beats and releases --------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(a_record_is_whole_in_every_look_while_it_beats) {  // C18
    const directory d;
    const auto lock = fslock::acquire(d / "x", beating());
    int damaged = 0;
    for (int i = 0; i < 50'000; ++i) {
        const auto info = fslock::inspect(d / "x");
        if (!info || info->malformed || info->owner.pid != ::getpid() || info->verdict != fslock::liveness::alive)
            ++damaged;
    }
    BOOST_TEST(damaged == 0);
}

BOOST_AUTO_TEST_CASE(a_release_in_the_middle_of_beats_always_releases) {  // F04
    const directory d;
    int left = 0;
    for (int i = 0; i < 3'000; ++i) {
        auto lock = fslock::acquire(d / "x", beating());
        if (i % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(i % 2500));
        fslock::error_code ec;
        lock.release(ec);
        if (ec || std::filesystem::exists(d / "x")) ++left;
    }
    BOOST_TEST(left == 0);
    BOOST_TEST(d.empty());
}

BOOST_AUTO_TEST_CASE(a_holder_that_asks_is_told_before_its_next_beat) {  // F08
    for (const auto witness : {fslock::witness::automatic, fslock::witness::off}) {
        const directory d;
        auto o = minutes();
        o.heartbeat_interval = 1h;
        o.witness = witness;
        auto lock = fslock::acquire(d / "x", o);
        BOOST_TEST(lock.verify());
        std::filesystem::remove(d / "x");
        BOOST_TEST(!lock.verify());
    }
}

BOOST_AUTO_TEST_CASE(beats_leave_the_directory_as_it_is) {  // G19
    const directory d;
    const auto lock = fslock::acquire(d / "x", minutes());
    const auto before = modified(d.path());
    auto last = field_of(read_file(d / "x"), "heartbeat_at_ms");
    for (int i = 0; i < 3; ++i) {
        const auto seen = std::exchange(last, std::string());
        BOOST_TEST(eventually([&] { return last = field_of(read_file(d / "x"), "heartbeat_at_ms"), last != seen; }));
    }
    const auto after = modified(d.path());
    BOOST_TEST((before.tv_sec == after.tv_sec && before.tv_nsec == after.tv_nsec));
}

BOOST_AUTO_TEST_CASE(a_second_link_to_a_record_changes_nothing) {  // E18
    const directory d;
    auto lock = fslock::acquire(d / "x", minutes());
    std::filesystem::create_hard_link(d / "x", d / "trash");
    BOOST_TEST(blocked(d / "x"));
    BOOST_TEST(lock.verify());
    lock.release();
    BOOST_TEST(d.names() == std::vector<std::string>{"trash"}, boost::test_tools::per_element());
    seed_record(dead_pid).write(d / "x", 2h);
    std::filesystem::create_hard_link(d / "x", d / "other trash");
    BOOST_TEST(had_within_patience(d / "x"));
}

BOOST_AUTO_TEST_CASE(a_lock_is_given_back_by_the_handler_of_a_signal) {  // I08
    const directory d;
    asio::io_context io;
    asio::signal_set signals(io, SIGUSR1);
    int turns = 0;
    std::function<void()> next = [&] {
        signals.async_wait([&](fslock::error_code, int) {
            (void)fslock::acquire(d / "x", minutes()).verify();
            if (++turns < 1'000) next();
        });
        (void)std::raise(SIGUSR1);
    };
    next();
    io.run();
    BOOST_TEST(turns == 1'000);
    BOOST_TEST(d.empty());
}

// ---- takeovers ------------------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(threads_of_one_process_take_dead_owners_over_one_at_a_time) {  // E04
    constexpr int threads = 8;
    constexpr int rounds = 40;
    const directory d;
    std::array<std::atomic<int>, rounds> inside{};
    std::atomic<int> overlaps{0}, turns{0};
    std::vector<std::thread> all;
    for (int round = 0; round < rounds; ++round) seed_record(dead_pid).write(d / std::to_string(round), 2h);
    for (int i = 0; i < threads; ++i) {
        all.emplace_back([&] {
            for (int round = 0; round < rounds; ++round) {
                asio::io_context io;  // each its own: what one process shares is the names of its private files
                fslock::async_acquire(io, d / std::to_string(round), minutes(), [&](fslock::error_code ec, lock_guard) {
                    if (ec) return;
                    auto& here = inside[static_cast<std::size_t>(round)];
                    if (++here != 1) ++overlaps;
                    ++turns;
                    --here;
                });
                io.run();
            }
        });
    }
    for (auto& t : all) t.join();
    BOOST_TEST(turns == threads * rounds);
    BOOST_TEST(overlaps == 0);
    BOOST_TEST(d.empty());
}

BOOST_AUTO_TEST_CASE(there_are_no_tokens_of_tokens) {  // E07
    const directory d;
    seed_record(dead_pid).write(d / "x", 2h);
    seed_record(dead_pid).write(d / ".x.reclaim", 2h);
    seed_record(dead_pid).write(d / "..x.reclaim.reclaim", 2h);
    BOOST_TEST(had_within_patience(d / "x"));
    BOOST_TEST(d.names() == std::vector<std::string>{"..x.reclaim.reclaim"}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_free_lock_is_had_whoever_has_its_token) {  // E09
    const directory d;
    child reclaimer(live_on);
    peer_record(reclaimer.pid()).write(d / ".x.reclaim");
    reclaimer.signal(SIGSTOP);
    BOOST_TEST(obtainable(d / "x", minutes()) == "");
    BOOST_TEST(d.names() == std::vector<std::string>{".x.reclaim"}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(epochs_grow_from_owner_to_owner_over_takeovers) {  // F09
    const directory d;
    long last = 0;
    for (int i = 0; i < 100; ++i) {
        auto dead = peer_record(dead_pid);
        if (i % 10 == 9) dead.text("writer_epoch", std::to_string(dead_pid) + '-' + std::to_string(last + 1'000'000));
        dead.write(d / "x", 2h);
        const auto lock = fslock::acquire(d / "x", minutes());
        const auto epoch = nanoseconds_of(lock.writer_epoch());
        BOOST_TEST(epoch > last + (i % 10 == 9 ? 1'000'000 : 0));
        last = epoch;
    }
}

// ---- where locks are ------------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(an_owner_that_gave_up_its_powers_beats_and_is_told_that_it_cannot_release,
                     *precondition(two_users)) {  // H16
    const directory d;
    (void)::chmod(d.path().c_str(), 0755);
    const auto words = in_child([&] {
        auto lock = fslock::acquire(d / "x", minutes());
        (void)::chmod((d / "x").c_str(), 0644);
        if (::setgid(65534) != 0 || ::setuid(65534) != 0) return std::string("setuid");
        const auto first = field_of(read_file(d / "x"), "heartbeat_at_ms");
        std::string problems;
        if (!eventually([&] { return field_of(read_file(d / "x"), "heartbeat_at_ms") > first; }))
            problems += "no beat\n";
        fslock::error_code ec;
        lock.release(ec);
        if (ec != os_error(EACCES)) problems += "release: " + ec.message();
        return problems;
    });
    BOOST_TEST(words == "");
    BOOST_TEST(had_within_patience(d / "x"));
}

namespace {

boost::test_tools::assertion_result one_case(boost::unit_test::test_unit_id) {
    const directory d;
    write_file(d / "a", "");
    boost::test_tools::assertion_result r(std::filesystem::exists(d / "A"));
    r.message() << "the filesystem of the tests tells upper case from lower case";
    return r;
}

}  // namespace

BOOST_AUTO_TEST_CASE(two_spellings_of_one_name_are_one_lock, *precondition(one_case)) {  // H13
    const directory d;
    auto lock = fslock::acquire(d / "State", minutes());
    BOOST_TEST(blocked(d / "state"));
    BOOST_TEST(lock.verify());
    lock.release();
    BOOST_TEST(had_within_patience(d / "state"));
    BOOST_TEST(eventually([&] { return d.empty(); }));  // over FUSE a thread of the pool removes the record
}

BOOST_AUTO_TEST_SUITE_END()
