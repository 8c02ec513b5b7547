// Who gets a lock and when: the order, cancellation, limits of time, and contexts that contend.
#include <asio/awaitable.hpp>
#include <asio/bind_cancellation_slot.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/io_context.hpp>
#include <asio/use_awaitable.hpp>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <deque>
#include <limits>
#include <thread>

#include "crafted.hpp"
#include "fslock/fslock.hpp"
#include "support/directory.hpp"
#include "support/run_until.hpp"

namespace {

using namespace support;
namespace asio = fslock::asio;
using asio::cancellation_type;
using fslock::error_code;
using fslock::lock_guard;
using fslock::options;
using std::filesystem::path;

/// What a handler was called with.
struct result {
    int calls = 0;
    error_code error;
    lock_guard lock;

    auto handler() {
        return [this](error_code ec, lock_guard got) {
            ++calls;
            error = ec;
            lock = std::move(got);
        };
    }
};

void make_known(const directory& d) { (void)fslock::try_acquire(d / "known", patience); }

/// Waiters with a number and a signal each, who write down their number and give back what they got.
class line {
 public:
    explicit line(asio::io_context& io) : io_(io) {}

    void join(const path& p) {
        const int number = static_cast<int>(signals_.size());
        auto& signal = signals_.emplace_back();
        const auto handler = [this, number](error_code ec, lock_guard lock) {
            (lock ? served : left).push_back(number);
            BOOST_TEST((lock ? !ec : ec == asio::error::operation_aborted));
        };
        fslock::async_acquire(io_, p, minutes(), asio::bind_cancellation_slot(signal.slot(), handler));
    }
    void leave(int number, cancellation_type how = cancellation_type::total) {
        signals_.at(static_cast<std::size_t>(number)).emit(how);
    }
    [[nodiscard]] bool is_over() const { return served.size() + left.size() == signals_.size(); }

    std::vector<int> served;
    std::vector<int> left;

 private:
    asio::io_context& io_;
    std::deque<asio::cancellation_signal> signals_;
};

void check_served(const line& l, const std::vector<int>& expected) {
    BOOST_TEST(l.served == expected, boost::test_tools::per_element());
}

using wide = std::chrono::duration<double>;

/// Asks with each timeout that means one attempt.
int ask_with_no_time(asio::io_context& io, const path& p, std::deque<result>& results) {
    const auto ask = [&](auto timeout) {
        fslock::async_try_acquire(io, p, timeout, minutes(), results.emplace_back().handler());
        BOOST_TEST(run_until(io, [&] { return results.back().calls == 1; }));
    };
    ask(0s);
    ask(-1h);
    ask(std::chrono::nanoseconds::min());
    ask(std::chrono::hours::min());
    ask(wide(-0.5));
    ask(wide(std::numeric_limits<double>::quiet_NaN()));
    return static_cast<int>(results.size());
}

/// Asks with each timeout that means for ever; whoever gets the lock gives it back.
int ask_with_all_time(asio::io_context& io, const path& p, int& got) {
    const auto handler = [&got](error_code ec, lock_guard lock) { got += !ec && lock; };
    fslock::async_try_acquire(io, p, std::chrono::hours::max(), minutes(), handler);
    fslock::async_try_acquire(io, p, std::chrono::nanoseconds::max(), minutes(), handler);
    fslock::async_try_acquire(io, p, wide(std::numeric_limits<double>::infinity()), minutes(), handler);
    fslock::async_try_acquire(io, p, wide(std::numeric_limits<double>::max()), minutes(), handler);
    return 4;
}

asio::awaitable<void> enter_in_turn(path p, std::atomic<int>* inside, int* entered, int times) {
    for (int i = 0; i < times; ++i) {
        auto o = minutes();
        o.poll_interval = 1ms;
        auto lock = co_await fslock::async_acquire(p, o, asio::use_awaitable);
        if (inside->fetch_add(1) != 0) throw std::logic_error("two owners");
        std::this_thread::yield();
        inside->fetch_sub(1);
        lock.release();
        ++*entered;
    }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(acquire)

BOOST_AUTO_TEST_CASE(first_come_first_served_whoever_leaves_in_between) {
    const directory d;
    asio::io_context io;
    line l(io);
    auto lock = fslock::acquire(d / "x");  // makes the directory known
    lock.release();
    result first;
    fslock::async_acquire(io, d / "x", minutes(), first.handler());
    for (int i = 0; i < 6; ++i) l.join(d / "x");
    for (const int i : {0, 2, 5}) l.leave(i);
    BOOST_TEST(run_until(io, [&] { return first.calls == 1 && l.left.size() == 3; }));
    first.lock.release();
    BOOST_TEST(run_until(io, [&] { return l.is_over(); }));
    check_served(l, {1, 3, 4});
    BOOST_TEST(d.empty());
}

BOOST_AUTO_TEST_CASE(first_come_first_served_while_the_directory_is_looked_at) {
    for (int round = 0; round < 50; ++round) {
        const directory d;
        asio::io_context io;
        line l(io);
        bool all_here = false;
        for (int i = 0; i < 6; ++i) asio::post(io, [&] { l.join(d / "x"); });
        asio::post(io, [&] { all_here = true, l.leave(5); });
        BOOST_TEST(run_until(io, [&] { return all_here && l.is_over(); }));
        const std::vector<int> all{0, 1, 2, 3, 4};
        auto stayed = l.served;
        std::erase(stayed, 5);  // may have been served before it left
        BOOST_TEST(stayed == all, boost::test_tools::per_element());
        BOOST_TEST(d.empty());
    }
}

BOOST_AUTO_TEST_CASE(who_waits_for_another_context_stays_ahead_of_who_comes_later) {
    const directory d;
    auto lock = fslock::acquire(d / "x");
    asio::io_context io;
    line l(io);
    for (int i = 0; i < 3; ++i) l.join(d / "x");
    (void)io.poll();
    lock.release();
    for (int i = 0; i < 3; ++i) l.join(d / "x");
    BOOST_TEST(run_until(io, [&] { return l.is_over(); }));
    check_served(l, {0, 1, 2, 3, 4, 5});
}

BOOST_AUTO_TEST_CASE(every_kind_of_cancellation_ends_a_wait) {
    const directory d;
    for (const auto how : {cancellation_type::total, cancellation_type::partial, cancellation_type::terminal}) {
        auto lock = fslock::acquire(d / "x");
        asio::io_context io;
        line l(io);
        l.join(d / "x");  // waits
        l.join(d / "x");  // is queued behind it
        (void)io.poll();
        l.leave(1, how);
        BOOST_TEST(run_until(io, [&] { return l.left.size() == 1; }));
        BOOST_TEST(l.left[0] == 1);
        l.leave(0, how);
        BOOST_TEST(run_until(io, [&] { return l.is_over(); }));
        BOOST_TEST(l.served.empty());
        BOOST_TEST(lock.verify());
        lock.release();
        BOOST_TEST(d.empty());
    }
}

BOOST_AUTO_TEST_CASE(cancelling_the_first_waiter_gives_its_place_to_the_next) {
    const directory d;
    auto lock = fslock::acquire(d / "x");
    asio::io_context io;
    line l(io);
    for (int i = 0; i < 3; ++i) l.join(d / "x");
    (void)io.poll();
    l.leave(0);
    BOOST_TEST(run_until(io, [&] { return !l.left.empty(); }));
    lock.release();
    BOOST_TEST(run_until(io, [&] { return l.is_over(); }));
    check_served(l, {1, 2});
}

BOOST_AUTO_TEST_CASE(cancellation_of_no_type_and_after_the_end_does_nothing) {
    const directory d;
    asio::cancellation_signal signal;
    result r;
    {
        asio::io_context io;
        auto lock = fslock::acquire(d / "x");
        fslock::async_acquire(io, d / "x", minutes(), asio::bind_cancellation_slot(signal.slot(), r.handler()));
        (void)io.poll();
        signal.emit(cancellation_type::none);
        (void)io.poll();
        BOOST_TEST(r.calls == 0);
        lock.release();
        BOOST_TEST(run_until(io, [&] { return r.calls == 1; }));
        signal.emit(cancellation_type::all);
        (void)io.poll();
        BOOST_TEST(r.lock.verify());
    }
    signal.emit(cancellation_type::all);
    BOOST_TEST(r.calls == 1);
    BOOST_TEST(r.lock.verify());
}

BOOST_AUTO_TEST_CASE(a_signal_outlives_a_context_with_waiters) {
    const directory d;
    auto lock = fslock::acquire(d / "x");
    std::deque<asio::cancellation_signal> signals;
    result r;
    {
        asio::io_context io;
        for (int i = 0; i < 2; ++i)
            fslock::async_acquire(io, d / "x", minutes(),
                                  asio::bind_cancellation_slot(signals.emplace_back().slot(), r.handler()));
        (void)io.poll();
    }
    for (auto& s : signals) s.emit(cancellation_type::terminal);
    BOOST_TEST(r.calls == 0);
    BOOST_TEST(d.names().size() == 1U);
}

BOOST_AUTO_TEST_CASE(no_time_means_one_attempt) {
    const directory d;
    asio::io_context io;
    auto lock = fslock::acquire(d / "held");
    std::deque<result> in_vain;
    ask_with_no_time(io, d / "held", in_vain);
    for (const auto& r : in_vain) BOOST_TEST((!r.error && !r.lock));
    std::deque<result> alone;
    const int asked = ask_with_no_time(io, d / "free", alone);
    BOOST_TEST(static_cast<bool>(alone.front().lock));
    for (const auto& r : alone) BOOST_TEST((!r.error && static_cast<bool>(r.lock) == (&r == &alone.front())));
    BOOST_TEST(asked == 6);
}

BOOST_AUTO_TEST_CASE(the_longest_timeouts_do_not_overflow) {
    const directory d;
    asio::io_context io;
    auto lock = fslock::acquire(d / "x");
    int got = 0;
    const int asked = ask_with_all_time(io, d / "x", got);
    (void)io.poll();
    lock.release();
    BOOST_TEST(run_until(io, [&] { return got == asked; }));
}

BOOST_AUTO_TEST_CASE(a_timeout_leaves_an_empty_guard_and_no_error) {
    const directory d;
    asio::io_context io;
    auto lock = fslock::acquire(d / "x");
    result waiting, queued;
    fslock::async_try_acquire(io, d / "x", wide(0.02), minutes(), waiting.handler());
    fslock::async_try_acquire(io, d / "x", 10ms, minutes(), queued.handler());
    BOOST_TEST(run_until(io, [&] { return waiting.calls + queued.calls == 2; }));
    BOOST_TEST((!waiting.error && !waiting.lock && !queued.error && !queued.lock));
    BOOST_TEST(d.names().size() == 1U);
}

BOOST_AUTO_TEST_CASE(one_attempt_gets_a_free_lock_in_a_directory_never_seen_before) {
    for (int i = 0; i < 100; ++i) {
        const directory d;
        asio::io_context io;
        result r;
        fslock::async_try_acquire_once(io, d / "x", r.handler());
        const auto blocking = fslock::try_acquire_once(d / "y");
        BOOST_TEST(run_until(io, [&] { return r.calls == 1; }));
        BOOST_TEST(static_cast<bool>(r.lock));
        BOOST_TEST(static_cast<bool>(blocking));
    }
}

BOOST_AUTO_TEST_CASE(one_attempt_on_a_lock_of_the_same_context_is_refused_at_once) {
    const directory d;
    make_known(d);
    asio::io_context io;
    result first, second;
    fslock::async_acquire(io, d / "x", minutes(), first.handler());
    fslock::async_try_acquire_once(io, d / "x", minutes(), second.handler());
    BOOST_TEST(run_until(io, [&] { return first.calls + second.calls == 2; }));
    BOOST_TEST((first.lock && !second.error && !second.lock));
}

BOOST_AUTO_TEST_CASE(two_contexts_never_own_together) {
    const directory d;
    std::atomic<int> inside{0};
    int entered[2] = {0, 0};
    const auto contend = [&](int* count) {
        asio::io_context io;
        for (int i = 0; i < 2; ++i)
            asio::co_spawn(io, enter_in_turn(d / "x", &inside, count, 25), asio::detached);
        (void)io.run_for(patience);
    };
    std::thread other([&] { contend(&entered[1]); });
    contend(&entered[0]);
    other.join();
    BOOST_TEST(entered[0] == 50);
    BOOST_TEST(entered[1] == 50);
    BOOST_TEST(d.empty());
}

BOOST_AUTO_TEST_SUITE_END()
