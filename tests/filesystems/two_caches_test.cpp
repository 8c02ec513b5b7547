// One directory through two mounts, each with a cache of its own: $FSLOCK_TWO_MOUNTS, as `one:other`. Exclusion must not
// depend on what a cache says, and an owner that cannot be asked for is taken over only after its silence.
#include <boost/test/unit_test.hpp>

#include <dlfcn.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "fslock/fslock.hpp"
#include "support/child.hpp"

namespace {

std::atomic<long> skew_of_wall_clock{0};  ///< seconds, in this process

}  // namespace

/// In place of the C library's: what another host's clock says.
extern "C" int clock_gettime(clockid_t which, timespec* into) noexcept {
    using function = int(clockid_t, timespec*);
    static auto* const real = reinterpret_cast<function*>(::dlsym(RTLD_NEXT, "clock_gettime"));
    const int n = real(which, into);
    if (which == CLOCK_REALTIME) into->tv_sec += skew_of_wall_clock;
    return n;
}

namespace {

using namespace std::chrono_literals;
using boost::unit_test::precondition;
using std::filesystem::path;
using support::child;

constexpr auto patience = 60s;
constexpr auto silence = 15s;  // less than that, and a server that calls back a delegation may be the silent one

/// The two ways to one new directory.
struct two_ways {
    two_ways() {
        const std::string given = std::getenv("FSLOCK_TWO_MOUNTS");
        const auto colon = given.find(':');
        const auto name = "two-ways-" + std::to_string(::getpid()) + '-' + std::to_string(++number);
        one = path(given.substr(0, colon)) / name;
        other = path(given.substr(colon + 1)) / name;
        std::filesystem::create_directory(one);
        const auto end = std::chrono::steady_clock::now() + patience;
        while (!std::filesystem::exists(other) && std::chrono::steady_clock::now() < end) ::usleep(10'000);
    }
    two_ways(const two_ways&) = delete;
    two_ways& operator=(const two_ways&) = delete;
    ~two_ways() {
        std::error_code ignored;
        std::filesystem::remove_all(one, ignored);
    }

    static inline int number = 0;
    path one, other;
};

fslock::options quick() {
    fslock::options o;
    o.heartbeat_interval = 500ms;
    o.stale_after = 2s;
    o.foreign_stale_after = silence;
    o.foreign_confirm = 2s;
    o.poll_interval = 20ms;
    return o;
}

/// With what an owner and a contender are told on the way, for whoever has to explain a failure.
fslock::options quick_and_told(const char* who) {
    auto o = quick();
    o.on_event = [who](const fslock::event& e) {
        const std::chrono::duration<double> now = std::chrono::steady_clock::now().time_since_epoch();
        std::fprintf(stderr, "%.3f %s: %s\n", now.count(), who, to_string(e).c_str());
    };
    return o;
}

boost::test_tools::assertion_result two_mounts(boost::unit_test::test_unit_id) {
    boost::test_tools::assertion_result r(std::getenv("FSLOCK_TWO_MOUNTS") != nullptr &&
                                          *std::getenv("FSLOCK_TWO_MOUNTS") != '\0');
    r.message() << "FSLOCK_TWO_MOUNTS names no two mounts of one directory";
    return r;
}

boost::test_tools::assertion_result namespaces(boost::unit_test::test_unit_id) {
    boost::test_tools::assertion_result r(support::run_program({"unshare", "--pid", "--fork", "true"}) == 0);
    r.message() << "PID namespaces cannot be made here (unshare --pid)";
    return r;
}

/// Seen by both contenders, whatever their mounts say.
struct page {
    std::atomic<int> inside, overlaps, turns, lost, errors;
};

page& shared_page() {
    static auto* const p = static_cast<page*>(
        ::mmap(nullptr, sizeof(page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    return *new (p) page{};
}

void take_turns(child::pipe_to_parent& parent, const path& lock_path, page& p, int wanted) {
    const auto note = [&](const char* what, fslock::error_code ec) {
        if (!ec) return;
        ++p.errors;
        const auto text = std::string(what) + " through " + lock_path.native() + ": " + ec.message() + '\n';
        (void)!::write(STDERR_FILENO, text.data(), text.size());
    };
    fslock::error_code ec;
    for (int i = 0; i < wanted; ++i) {
        auto lock = fslock::acquire(lock_path, quick(), ec);
        note("acquire", ec);
        if (ec) continue;
        if (++p.inside != 1) ++p.overlaps;
        ++p.turns;
        ::usleep(3000);
        if (!lock.verify(ec)) ++p.lost;
        note("verify", ec);
        --p.inside;
        lock.release(ec);
        note("release", ec);
    }
    parent.say('e');
}

/// In a PID namespace of its own, as if on another host: nobody can look for its process.
void own_elsewhere(child::pipe_to_parent& parent, const path& lock_path, long skew = 0) {
    skew_of_wall_clock = skew;
    if (::unshare(CLONE_NEWPID) != 0) ::_exit(96);
    const pid_t first = ::fork();
    if (first == 0) {
        support::die_with_parent();
        const auto lock = fslock::acquire(lock_path, quick_and_told("owner"));
        parent.say('o');
        for (;;) ::pause();
    }
    (void)::waitpid(first, nullptr, 0);
    ::_exit(0);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(two_caches, *precondition(two_mounts))

BOOST_AUTO_TEST_CASE(exclusion_does_not_depend_on_a_cache) {  // G09
    const two_ways d;
    auto& p = shared_page();
    constexpr int wanted = 30;
    {
        child a([&](child::pipe_to_parent& up) { take_turns(up, d.one / "x", p, wanted); });
        child b([&](child::pipe_to_parent& up) { take_turns(up, d.other / "x", p, wanted); });
        child c([&](child::pipe_to_parent& up) { take_turns(up, d.other / "x", p, wanted); });
        for (auto* const who : {&a, &b, &c})
            for (int minutes = 0; !who->speaks_within(60'000) && minutes < 10;) ++minutes;
    }
    BOOST_TEST(p.errors == 0);
    BOOST_TEST(p.turns == 3 * wanted);
    BOOST_TEST(p.overlaps == 0);
    BOOST_TEST(p.lost == 0);
}

BOOST_AUTO_TEST_CASE(a_beating_owner_behind_another_cache_is_left_alone, *precondition(namespaces)) {  // B05, G09
    const two_ways d;
    child owner([&](child::pipe_to_parent& parent) { own_elsewhere(parent, d.one / "x"); });
    BOOST_TEST_REQUIRE(owner.hear() == 'o');
    BOOST_TEST(!fslock::try_acquire(d.other / "x", 2 * silence, quick_and_told("contender")));
}

BOOST_AUTO_TEST_CASE(an_owner_whose_clock_is_hours_off_is_left_alone, *precondition(namespaces)) {  // D01, D03
    for (const long hours : {-5, 5}) {
        const two_ways d;
        child owner([&](child::pipe_to_parent& parent) { own_elsewhere(parent, d.one / "x", hours * 3600); });
        BOOST_TEST_REQUIRE(owner.hear() == 'o');
        BOOST_TEST(!fslock::try_acquire(d.other / "x", 2 * silence, quick_and_told("contender")));
    }
}

BOOST_AUTO_TEST_CASE(the_other_mount_takes_over_only_after_silence, *precondition(namespaces)) {  // G09
    const two_ways d;
    child owner([&](child::pipe_to_parent& parent) { own_elsewhere(parent, d.one / "x"); });
    BOOST_TEST_REQUIRE(owner.hear() == 'o');
    owner.kill_and_reap();
    const auto dead = std::chrono::steady_clock::now();
    const auto lock = fslock::try_acquire(d.other / "x", 2 * patience, quick_and_told("contender"));
    BOOST_TEST(static_cast<bool>(lock));
    // A beat may have been the last thing that it did; the stamps have a resolution of a second.
    BOOST_TEST((std::chrono::steady_clock::now() - dead > silence - 2s));
}

BOOST_AUTO_TEST_SUITE_END()
