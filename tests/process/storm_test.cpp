// Eight processes, one lock, and somebody who kills them at random.
#include <boost/test/unit_test.hpp>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <random>
#include <thread>

#include "fslock/fslock.hpp"
#include "support/child.hpp"
#include "support/directory.hpp"
#include "support/filesystem.hpp"

namespace {

using namespace std::chrono_literals;

/// Seen by all processes.
struct page {
    std::atomic<int> inside;     ///< pid of who works under the lock, or 0
    std::atomic<int> overlaps;   ///< two at once, both of them alive
    std::atomic<int> acquired;
    std::atomic<int> wanted;
    std::atomic<int> kills;
    /// Who was told to die. A process that is dying has let go of its lock before anybody can see it dead.
    std::array<std::atomic<int>, 1 << 16> condemned;

    [[nodiscard]] bool is_condemned(int pid) const {
        for (int i = 0; i < kills; ++i)
            if (condemned[static_cast<std::size_t>(i)] == pid) return true;
        return false;
    }
};

page& shared_page() {
    static auto* const p = static_cast<page*>(
        ::mmap(nullptr, sizeof(page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    return *new (p) page{};
}

fslock::options quick() {
    fslock::options o;
    o.heartbeat_interval = 50ms;
    o.poll_interval = 2ms;
    return o;
}

/// One turn under the lock. Whoever was inside and did not leave must have been killed.
void work(page& p) {
    const int me = ::getpid();
    const int other = p.inside.exchange(me);
    if (other != 0 && !p.is_condemned(other)) ++p.overlaps;
    ++p.acquired;
    (void)::usleep(static_cast<useconds_t>(p.acquired % 7) * 200);  // long enough to be killed in
    int expected = me;
    if (!p.inside.compare_exchange_strong(expected, 0)) ++p.overlaps;
}

void worker(const std::filesystem::path& path, page& p) {
    while (p.acquired < p.wanted) {
        const auto lock = fslock::acquire(path, quick());
        work(p);
    }
}

}  // namespace

BOOST_AUTO_TEST_CASE(no_two_own_and_nobody_is_stuck_while_owners_are_killed_at_random,
                     *boost::unit_test::precondition(support::local_filesystem)) {  // K06
    const char* const given = std::getenv("FSLOCK_STORM_ACQUISITIONS");
    const unsigned seed = std::random_device{}();
    BOOST_TEST_MESSAGE("seed " << seed);
    std::mt19937 chance(seed);
    const support::directory d;
    auto& p = shared_page();
    p.wanted = given != nullptr ? std::atoi(given) : 2000;
    const auto start = [&] {
        return std::make_unique<support::child>([&](support::child::pipe_to_parent&) { worker(d / "x", p); });
    };
    std::vector<std::unique_ptr<support::child>> workers;
    for (int i = 0; i < 8; ++i) workers.push_back(start());
    int last = -1;
    auto moved = std::chrono::steady_clock::now();
    while (p.acquired < p.wanted) {
        std::this_thread::sleep_for(std::chrono::milliseconds(chance() % 8));
        auto& victim = workers[chance() % workers.size()];
        // The one inside, half of the time: that is where it hurts.
        for (auto& w : workers)
            if (chance() % 2 == 0 && w->pid() == p.inside) std::swap(w, victim);
        p.condemned.at(static_cast<std::size_t>(p.kills)) = victim->pid();
        ++p.kills;
        victim->kill_and_reap();
        victim = start();
        if (p.acquired != std::exchange(last, p.acquired.load())) moved = std::chrono::steady_clock::now();
        BOOST_TEST_REQUIRE((std::chrono::steady_clock::now() - moved < 60s), "stuck, seed " << seed);
    }
    for (auto& w : workers) BOOST_TEST(w->wait() == 0);
    BOOST_TEST(p.overlaps == 0, "seed " << seed);
    BOOST_TEST_MESSAGE(p.acquired << " acquisitions, " << p.kills << " kills");
    // A last owner is killed, so that what reclaimers left behind is cleaned up by the next one.
    {
        support::child owner([&](support::child::pipe_to_parent& parent) {
            const auto lock = fslock::acquire(d / "x", quick());
            parent.say('o');
            for (;;) ::pause();
        });
        BOOST_TEST_REQUIRE(owner.hear() == 'o');
    }
    BOOST_TEST(static_cast<bool>(fslock::try_acquire(d / "x", 60s, quick())));
    // A process that is killed while it has a private file leaves that: where files cannot be unnamed, its record in
    // preparation; else only what it had moved aside at the moment. Never a record or a token.
    auto left = d.names();
    const auto temps = std::erase_if(left, [](const std::string& name) { return name.starts_with(".x.tmp."); });
    BOOST_TEST(left.empty());
    BOOST_TEST(temps <= static_cast<std::size_t>(p.kills));
    BOOST_TEST_MESSAGE(temps << " private files are left of " << p.kills << " killed processes");
}
