// Who may die before whom: contexts, guards, handlers and threads. What each behaviour leaves when its context ends
// is looked at in interrupted_test.cpp.
#include <asio/awaitable.hpp>
#include <asio/co_spawn.hpp>
#include <asio/compose.hpp>
#include <asio/detached.hpp>
#include <asio/io_context.hpp>
#include <asio/strand.hpp>
#include <asio/thread_pool.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/use_future.hpp>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <future>
#include <thread>

#include "crafted.hpp"
#include "fslock/fslock.hpp"
#include "support/directory.hpp"

namespace {

using namespace support;
namespace asio = fslock::asio;
using fslock::error_code;
using fslock::lock_guard;
using fslock::options;
using std::filesystem::path;

/// Is counted by `use_count` wherever a handler that has it is kept.
using trace = std::shared_ptr<std::atomic<int>>;
trace make_trace() { return std::make_shared<std::atomic<int>>(0); }

/// With a report and a pace that add handlers of the library's own.
options busy(const trace& t) {
    auto o = minutes();
    o.heartbeat_interval = 1ms;
    o.poll_interval = 1ms;
    o.on_event = [t](const fslock::event&) {};
    return o;
}

asio::awaitable<void> take_turns(path p, trace done, int turns) {
    for (int i = 0; i < turns; ++i) {
        const auto o = busy(done);
        auto lock = co_await fslock::async_acquire(p, o, asio::use_awaitable);
        const bool ours = co_await lock.async_verify(asio::use_awaitable);
        if (!ours) throw std::logic_error("not ours");
        co_await lock.async_release(asio::use_awaitable);
    }
    ++*done;
}

constexpr int contenders = 3;

lock_guard acquired_on(asio::io_context& io, const path& p, const options& o = minutes()) {
    lock_guard got;
    bool called = false;
    fslock::async_acquire(io, p, o, [&](error_code ec, lock_guard lock) {
        BOOST_TEST(!ec);
        got = std::move(lock);
        called = true;
    });
    while (!called && io.run_one_for(patience) != 0) {
    }
    io.restart();
    return got;
}

/// One step of a composed operation keeps its executor busy.
struct acquire_and_release {
    path p;
    options o;
    bool started = false;

    template <class Self>
    void operator()(Self& self, error_code ec = {}, lock_guard lock = {}) {
        if (!std::exchange(started, true)) {
            fslock::async_acquire(self.get_executor(), path(p), options(o), std::move(self));
            return;
        }
        if (lock) lock.release(ec);
        self.complete(ec);
    }
};

/// Runs `io` for as long as it has work; whether it came to an end.
bool runs_dry(asio::io_context& io) {
    (void)io.run_for(patience);
    return io.stopped();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(lifetime)

BOOST_AUTO_TEST_CASE(a_guard_outlives_its_context) {
    const directory d;
    lock_guard released, destroyed, verified;
    {
        asio::io_context io;
        released = acquired_on(io, d / "a");
        destroyed = acquired_on(io, d / "b");
        verified = acquired_on(io, d / "c");
    }
    BOOST_TEST(released.verify());
    released.release();
    destroyed = lock_guard();
    BOOST_TEST(d.names() == std::vector<std::string>{"c"}, boost::test_tools::per_element());
    auto ours = verified.async_verify(asio::use_future);
    BOOST_TEST(ours.get());
    auto gone = verified.async_release(asio::use_future);
    gone.get();
    BOOST_TEST(d.empty());
}

BOOST_AUTO_TEST_CASE(a_guard_of_a_stopped_context_goes_at_once) {
    const directory d;
    asio::io_context io;
    auto lock = acquired_on(io, d / "x");
    io.stop();
    lock = lock_guard();
    BOOST_TEST(d.empty());
}

BOOST_AUTO_TEST_CASE(waiters_go_on_when_their_context_is_restarted) {
    const directory d;
    asio::io_context io;
    auto lock = acquired_on(io, d / "x");
    int got = 0;
    fslock::async_acquire(io, d / "x", minutes(), [&](error_code ec, lock_guard next) { got += !ec && next; });
    (void)io.poll();
    io.stop();
    lock.release();
    BOOST_TEST(got == 0);
    io.restart();
    BOOST_TEST(runs_dry(io));
    BOOST_TEST(got == 1);
    BOOST_TEST(d.empty());
}

BOOST_AUTO_TEST_CASE(another_thread_may_release_while_the_context_of_the_waiters_ends) {
    const directory d;
    for (int round = 0; round < 200; ++round) {
        const auto calls = make_trace();
        std::atomic<bool> go{false};
        std::thread other;
        {
            asio::io_context io;
            auto lock = acquired_on(io, d / "x", busy(calls));
            for (int i = 0; i < contenders; ++i)
                fslock::async_acquire(io, d / "x", busy(calls), [calls](error_code, lock_guard) { ++*calls; });
            other = std::thread([&go, lock = std::move(lock)]() mutable {
                while (!go) std::this_thread::yield();
                lock.release();
            });
            go = true;
        }
        other.join();
        BOOST_TEST(*calls == 0);
        BOOST_TEST(calls.use_count() == 1);
        BOOST_TEST_REQUIRE(d.empty());
    }
}

BOOST_AUTO_TEST_CASE(a_thread_pool_may_end_while_its_threads_contend) {
    const directory d;
    for (int round = 0; round < 20; ++round) {
        const auto done = make_trace();
        {
            asio::thread_pool threads(2);
            for (int i = 0; i < 6; ++i) asio::co_spawn(threads, take_turns(d / "x", done, i + 1), asio::detached);
            BOOST_TEST_REQUIRE(eventually([&] { return *done > round % 3; }));
        }
        BOOST_TEST(eventually([&] { return done.use_count() == 1; }));
        BOOST_TEST_REQUIRE(eventually([&] { return d.empty(); }));
    }
}

BOOST_AUTO_TEST_CASE(a_thread_pool_runs_dry) {
    const directory d;
    const auto done = make_trace();
    asio::thread_pool threads(2);
    for (int i = 0; i < 6; ++i)
        asio::co_spawn(asio::make_strand(threads), take_turns(d / "x", done, 5), asio::detached);
    threads.join();
    BOOST_TEST(*done == 6);
    BOOST_TEST(d.empty());
}

BOOST_AUTO_TEST_CASE(run_returns_when_nothing_is_left) {
    const directory d;
    asio::io_context io;
    int got = 0;
    for (const char* const name : {"a", "a", "b"})
        fslock::async_acquire(io, d / name, minutes(), [&](error_code, lock_guard lock) { got += !!lock; });
    BOOST_TEST(runs_dry(io));
    BOOST_TEST(got == 3);
}

BOOST_AUTO_TEST_CASE(run_does_not_return_while_a_lock_is_held) {
    const directory d;
    asio::io_context io;
    auto lock = acquired_on(io, d / "x");
    (void)io.run_for(50ms);
    BOOST_TEST(!io.stopped());
    lock.release();
    io.restart();
    BOOST_TEST(runs_dry(io));
}

BOOST_AUTO_TEST_CASE(run_returns_whatever_kind_of_executor_came_first) {
    for (const bool listening : {false, true}) {
        const directory d;
        const auto heard = make_trace();
        asio::io_context io;
        auto tracked = asio::prefer(asio::any_io_executor(io.get_executor()),
                                    asio::execution::outstanding_work.tracked);
        int got = 0;
        const auto o = listening ? busy(heard) : minutes();
        fslock::async_acquire(tracked, d / "x", o, [&](error_code, lock_guard lock) { got += !!lock; });
        tracked = asio::any_io_executor();
        BOOST_TEST(runs_dry(io));
        BOOST_TEST(got == 1);
    }
}

BOOST_AUTO_TEST_CASE(run_returns_after_a_composed_operation) {
    for (const bool listening : {false, true}) {
        const directory d;
        const auto heard = make_trace();
        asio::io_context io;
        int called = 0;
        const auto done = [&](error_code ec) { called += !ec; };
        const auto o = listening ? busy(heard) : minutes();
        asio::async_compose<decltype(done)&, void(error_code)>(acquire_and_release{d / "x", o}, done, io);
        BOOST_TEST(runs_dry(io));
        BOOST_TEST(called == 1);
    }
}

BOOST_AUTO_TEST_CASE(an_operation_that_is_never_awaited_does_nothing_or_gives_back) {
    const directory d;
    asio::io_context io;
    { const auto never = fslock::async_acquire(io, d / "x", asio::use_awaitable); }
    BOOST_TEST(runs_dry(io));
    BOOST_TEST(d.empty());
    io.restart();
    auto lock = acquired_on(io, d / "x");
    { const auto never = lock.async_release(asio::use_awaitable); }
    BOOST_TEST(!lock);
    BOOST_TEST(d.empty());
}

BOOST_AUTO_TEST_SUITE_END()
