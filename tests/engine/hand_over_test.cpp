// From one owner to the next when events are lost, and when the last owner wants the lock again at once.
#include <sys/stat.h>

#include <asio/io_context.hpp>
#include <boost/test/unit_test.hpp>
#include <fstream>
#include <thread>

#include "crafted.hpp"
#include "fslock/fslock.hpp"
#include "support/directory.hpp"

namespace {

using namespace support;
namespace asio = fslock::asio;
using fslock::error_code;
using fslock::lock_guard;
using std::filesystem::path;

/// Polls come too late for any test.
fslock::options never_polls() {
    auto o = minutes();
    o.poll_interval = 1min;
    return o;
}

/// A context that asks for locks, and runs only when it is told to.
class asking {
 public:
    void ask(const path& p) {
        done_ = false;
        fslock::async_acquire(io_, p, never_polls(), [this](error_code ec, lock_guard lock) {
            BOOST_TEST(!ec);
            lock_ = std::move(lock);
            done_ = true;
        });
    }
    /// Until it waits.
    void settle() {
        while (io_.poll_one() != 0) {
        }
        io_.restart();
    }
    [[nodiscard]] bool gets_it_within(milliseconds time) {
        const auto end = std::chrono::steady_clock::now() + time;
        while (!done_ && std::chrono::steady_clock::now() < end) {
            (void)io_.run_one_for(1ms);
            io_.restart();
        }
        return done_;
    }
    void release() { lock_.release(); }

 private:
    asio::io_context io_;
    lock_guard lock_;
    bool done_ = false;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(overflow, *boost::unit_test::precondition(linux_facilities))

BOOST_AUTO_TEST_CASE(a_lost_event_wakes_everybody) {
    const directory d;
    const path others[] = {d / "a", d / "b"};
    auto a = fslock::acquire(others[0]);
    auto b = fslock::acquire(others[1]);
    auto owner = fslock::acquire(d / "x");
    asking waiter;
    waiter.ask(others[0]);
    waiter.settle();
    waiter.ask(others[1]);
    waiter.settle();
    waiter.ask(d / "x");
    waiter.settle();
    // Two that alternate are not taken for one by the kernel (inotify(7)).
    unsigned most = 0;
    std::ifstream("/proc/sys/fs/inotify/max_queued_events") >> most;
    for (unsigned i = 0; i <= most; ++i)
        BOOST_TEST_REQUIRE(::chmod(others[i % 2].c_str(), 0600) == 0);
    owner.release();
    BOOST_TEST(waiter.gets_it_within(30s));
}

BOOST_AUTO_TEST_SUITE_END()
BOOST_AUTO_TEST_SUITE(yield, *boost::unit_test::precondition(linux_facilities))

BOOST_AUTO_TEST_CASE(who_gave_back_leaves_the_lock_to_who_waited) {
    const directory d;
    asking greedy;
    asking polite;
    int rounds_of_polite = 0;
    for (int i = 0; i < 50; ++i) {
        greedy.ask(d / "x");
        BOOST_TEST_REQUIRE(greedy.gets_it_within(30s));
        polite.ask(d / "x");
        polite.settle();
        std::this_thread::sleep_for(1ms);  // after a turn as short as its pause the owner looks now and then only
        greedy.release();
        greedy.ask(d / "x");  // within a millisecond, or it need not yield
        if (polite.gets_it_within(20ms)) {
            ++rounds_of_polite;
            polite.release();
            BOOST_TEST_REQUIRE(greedy.gets_it_within(30s));
            greedy.release();
        } else {
            greedy.settle();
            greedy.release();
            BOOST_TEST_REQUIRE(polite.gets_it_within(30s));
            polite.release();
        }
    }
    BOOST_TEST(rounds_of_polite > 0);
}

BOOST_AUTO_TEST_SUITE_END()
