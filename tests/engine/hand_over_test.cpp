// From one owner to the next when events are lost, when a waiter in line has no more time, and when the last owner
// wants the lock again at once.
#include <sys/stat.h>

#include <asio/io_context.hpp>
#include <boost/test/unit_test.hpp>
#include <fstream>
#include <thread>

#include "asking.hpp"
#include "crafted.hpp"
#include "fslock/fslock.hpp"
#include "support/directory.hpp"

namespace {

using namespace support;
namespace asio = fslock::asio;
using fslock::error_code;
using fslock::lock_guard;
using std::filesystem::path;

/// A context that asks for locks, and runs only when it is told to.
class contender {
 public:
    void ask(const path& p, const fslock::options& o = never_polls()) {
        done_ = false;
        fslock::async_acquire(io_, p, o, [this](error_code ec, lock_guard lock) {
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
    /// Asks for what this context has already, with a limit. Whether the answer comes within `time`.
    [[nodiscard]] bool is_refused_in_line(const path& p, milliseconds limit, milliseconds time) {
        bool refused = false;
        fslock::async_try_acquire(io_, p, limit, never_polls(), [&](error_code ec, lock_guard lock) {
            BOOST_TEST(!ec);
            refused = !lock;
        });
        const auto end = std::chrono::steady_clock::now() + time;
        while (!refused && std::chrono::steady_clock::now() < end) {
            (void)io_.run_one_for(10ms);
            io_.restart();
        }
        return refused;
    }

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
    contender waiter;
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
BOOST_AUTO_TEST_SUITE(death, *boost::unit_test::precondition(linux_facilities) *
                                 boost::unit_test::precondition(threads_in_children))

BOOST_AUTO_TEST_CASE(the_kernel_tells_of_the_end_of_an_owner_without_a_witness) {
    const directory d;
    child owner([&](child::pipe_to_parent& parent) {
        auto o = minutes();
        o.witness = fslock::witness::off;
        o.heartbeat_interval = 1h;  // a beat that was seen would stay its death for a poll
        const auto lock = fslock::acquire(d / "x", o);
        parent.say('o');
        (void)parent.hear();
    });
    BOOST_TEST(owner.hear() == 'o');
    told t;
    contender waiter;
    waiter.ask(d / "x", t.listening(never_polls()));
    BOOST_TEST(!waiter.gets_it_within(100ms));
    BOOST_TEST_REQUIRE(t.has(fslock::event_kind::waiting));
    waiter.settle();
    owner.signal(SIGKILL);  // and nobody reaps it
    BOOST_TEST(waiter.gets_it_within(30s));
}

BOOST_AUTO_TEST_SUITE_END()
BOOST_AUTO_TEST_SUITE(in_line)

BOOST_AUTO_TEST_CASE(a_timeout_is_kept_behind_a_lock_of_the_same_context) {
    const directory d;
    contender a;
    a.ask(d / "x");
    BOOST_TEST_REQUIRE(a.gets_it_within(30s));
    BOOST_TEST(a.is_refused_in_line(d / "x", 20ms, 30s));
    a.release();
}

BOOST_AUTO_TEST_SUITE_END()
BOOST_AUTO_TEST_SUITE(yield, *boost::unit_test::precondition(linux_facilities))

BOOST_AUTO_TEST_CASE(who_gave_back_leaves_the_lock_to_who_waited) {
    const directory d;
    contender greedy;
    contender polite;
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
