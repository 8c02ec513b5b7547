// Every way to write a call: overloads, completion tokens, and the asynchronous steps of a guard.
#include <asio/awaitable.hpp>
#include <asio/bind_executor.hpp>
#include <asio/co_spawn.hpp>
#include <asio/experimental/awaitable_operators.hpp>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <asio/strand.hpp>
#include <asio/thread_pool.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/use_future.hpp>
#include <boost/test/unit_test.hpp>
#include <future>

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

/// Runs a coroutine to its end and passes on what it threw.
void run(asio::awaitable<void> body) {
    asio::io_context io;
    std::exception_ptr thrown;
    bool ended = false;
    asio::co_spawn(io, std::move(body), [&](std::exception_ptr e) {
        ended = true;
        thrown = std::move(e);
    });
    (void)io.run_for(patience);
    if (thrown) std::rethrow_exception(thrown);
    BOOST_TEST(ended);
}

/// Counts the locks that it is given.
struct counter {
    std::atomic<int>* locks;
    void operator()(error_code ec, const lock_guard& lock) const { *locks += !ec && lock; }
};

/// All overloads with an executor or a context in front. How many calls these are.
template <class Io>
int call_with(Io&& io, const std::string& in, counter got) {
    int n = 0;
    const auto name = [&] { return in + "/" + std::to_string(++n); };
    fslock::async_acquire(io, name(), options(), got);
    fslock::async_acquire(io, name(), {}, got);
    fslock::async_acquire(io, name(), got);
    fslock::async_try_acquire(io, name(), 1min, options(), got);
    fslock::async_try_acquire(io, name(), 1min, {}, got);
    fslock::async_try_acquire(io, name(), std::chrono::duration<double>(60), got);
    fslock::async_try_acquire_once(io, name(), options(), got);
    fslock::async_try_acquire_once(io, name(), {}, got);
    fslock::async_try_acquire_once(io, name(), got);
    return n;
}

/// All overloads where the handler says on what executor.
template <class Token>
int call_with_token(const std::string& in, Token token) {
    int n = 0;
    const auto name = [&] { return in + "/" + std::to_string(++n); };
    fslock::async_acquire(name(), options(), token);
    fslock::async_acquire(name(), {}, token);
    fslock::async_acquire(name(), token);
    fslock::async_try_acquire(name(), 1min, options(), token);
    fslock::async_try_acquire(name(), 1min, {}, token);
    fslock::async_try_acquire(name(), 1min, token);
    fslock::async_try_acquire_once(name(), options(), token);
    fslock::async_try_acquire_once(name(), {}, token);
    fslock::async_try_acquire_once(name(), token);
    return n;
}

asio::awaitable<void> await_with_default_tokens(path p) {
    for (int i = 0; i < 2; ++i) {
        auto first = co_await fslock::async_acquire(p);
        const bool ours = co_await first.async_verify();
        BOOST_TEST(ours);
        co_await first.async_release();
        auto second = co_await fslock::async_try_acquire(p, 1min);
        BOOST_TEST(static_cast<bool>(second));
        auto third = co_await fslock::async_try_acquire_once(p);
        BOOST_TEST(!third);
    }
}

asio::awaitable<void> await_the_lock_or_time(path p, std::chrono::milliseconds limit, std::size_t* who) {
    using namespace asio::experimental::awaitable_operators;
    asio::steady_timer timer(co_await asio::this_coro::executor, limit);
    auto lock = fslock::async_acquire(p, minutes(), asio::use_awaitable);
    auto time = timer.async_wait(asio::use_awaitable);
    const auto first = co_await (std::move(lock) || std::move(time));
    *who = first.index();
    if (const auto* const got = std::get_if<0>(&first)) BOOST_TEST(static_cast<bool>(*got));
}

asio::awaitable<void> verify_what_is_gone(path p) {
    lock_guard none;
    const bool empty = co_await none.async_verify(asio::use_awaitable);
    BOOST_TEST(!empty);
    auto lock = co_await fslock::async_acquire(p, minutes(), asio::use_awaitable);
    auto later = lock.async_verify(asio::use_awaitable);
    lock.release();
    const bool released = co_await std::move(later);
    BOOST_TEST(!released);
}

asio::awaitable<void> release_what_is_gone(path p) {
    lock_guard none;
    co_await none.async_release(asio::use_awaitable);
    auto lock = co_await fslock::async_acquire(p, minutes(), asio::use_awaitable);
    std::filesystem::remove(p);
    error_code told;
    try {
        co_await lock.async_release(asio::use_awaitable);
    } catch (const fslock::system_error& e) {
        told = e.code();
    }
    BOOST_TEST((told == fslock::errc::lost));
    BOOST_TEST(!lock);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(tokens)

BOOST_AUTO_TEST_CASE(a_context_or_an_executor_comes_first) {
    const directory in_context, in_executor, in_any, in_strand;
    asio::io_context io;
    std::atomic<int> got{0};
    int calls = call_with(io, in_context.path(), counter{&got});
    calls += call_with(io.get_executor(), in_executor.path(), counter{&got});
    calls += call_with(asio::any_io_executor(io.get_executor()), in_any.path(), counter{&got});
    calls += call_with(asio::make_strand(io), in_strand.path(), counter{&got});
    (void)io.run_for(patience);
    BOOST_TEST(io.stopped());
    BOOST_TEST(got == calls);
}

BOOST_AUTO_TEST_CASE(a_thread_pool_may_come_first) {
    const directory d;
    asio::thread_pool threads(2);
    std::atomic<int> got{0};
    const int calls = call_with(threads, d.path(), counter{&got});
    threads.join();
    BOOST_TEST(got == calls);
}

BOOST_AUTO_TEST_CASE(a_handler_may_bring_its_executor) {
    const directory d;
    asio::io_context io;
    std::atomic<int> got{0};
    const int calls = call_with_token(d.path(), asio::bind_executor(io.get_executor(), counter{&got}));
    BOOST_TEST(got == 0);
    (void)io.run_for(patience);
    BOOST_TEST(io.stopped());
    BOOST_TEST(got == calls);
}

BOOST_AUTO_TEST_CASE(a_handler_without_an_executor_runs_on_the_system_context) {
    const directory d;
    const auto got = std::make_shared<std::atomic<int>>(0);
    const int calls = call_with_token(d.path(), [got](error_code ec, const lock_guard& lock) { *got += !ec && lock; });
    BOOST_TEST(eventually([&] { return *got == calls && got.use_count() == 1; }));
    BOOST_TEST(eventually([&] { return d.empty(); }));
}

BOOST_AUTO_TEST_CASE(a_literal_is_a_path) {
    asio::io_context io;
    int refused = 0;
    const auto handler = [&](error_code ec, const lock_guard&) { refused += ec == std::errc::no_such_file_or_directory; };
    fslock::async_acquire(io, "/no/such/directory", handler);
    fslock::async_acquire(io, "/no/such/directory", {}, handler);
    fslock::async_acquire("/no/such/directory", asio::bind_executor(io.get_executor(), handler));
    fslock::async_try_acquire_once(io, "/no/such/directory", {}, handler);
    (void)io.run_for(patience);
    BOOST_TEST(refused == 4);
    error_code ec;
    BOOST_TEST(!fslock::acquire("/no/such/directory", {}, ec));
    BOOST_TEST(!fslock::try_acquire("/no/such/directory", 1s, {}, ec));
    BOOST_TEST(!fslock::try_acquire_once("/no/such/directory", {}, ec));
    BOOST_CHECK_THROW((void)fslock::acquire("/no/such/directory"), fslock::system_error);
}

BOOST_AUTO_TEST_CASE(an_error_can_be_had_without_options) {
    const directory d;
    error_code ec;
    const auto refused = [&](const lock_guard& lock) {
        return !lock && std::exchange(ec, {}) == std::errc::no_such_file_or_directory;
    };
    BOOST_TEST(refused(fslock::acquire(d / "no/x", ec)));
    BOOST_TEST(refused(fslock::try_acquire(d / "no/x", 1s, ec)));
    BOOST_TEST(refused(fslock::try_acquire_once(d / "no/x", ec)));
    ec = std::make_error_code(std::errc::interrupted);
    BOOST_TEST(static_cast<bool>(fslock::acquire(d / "x", ec)));
    BOOST_TEST(!ec);
    BOOST_TEST(static_cast<bool>(fslock::try_acquire(d / "x", 1s, ec)));
    BOOST_TEST(static_cast<bool>(fslock::try_acquire_once(d / "x", ec)));
    BOOST_TEST(!ec);
}

BOOST_AUTO_TEST_CASE(a_future_has_the_lock_or_throws) {
    const directory d;
    asio::thread_pool threads(1);
    auto coming = fslock::async_acquire(threads, d / "x", asio::use_future);
    auto lock = coming.get();
    BOOST_TEST(static_cast<bool>(lock));
    auto never = fslock::async_acquire(threads, d / "no" / "x", asio::use_future);
    BOOST_CHECK_THROW((void)never.get(), fslock::system_error);
    auto without = fslock::async_try_acquire_once(d / "x", asio::use_future);
    BOOST_TEST(!without.get());
    auto gone = lock.async_release(asio::use_future);
    gone.get();
    threads.join();
}

BOOST_AUTO_TEST_CASE(a_handler_runs_on_its_own_executor_and_the_lock_lives_on_the_other) {
    const directory d;
    asio::io_context of_lock;
    asio::thread_pool of_handler(1);
    std::promise<bool> there;
    lock_guard got;
    fslock::async_acquire(of_lock, d / "x", minutes(),
                          asio::bind_executor(of_handler, [&](error_code, lock_guard lock) {
                              got = std::move(lock);
                              there.set_value(of_handler.get_executor().running_in_this_thread());
                          }));
    auto answer = there.get_future();
    while (answer.wait_for(0s) != std::future_status::ready && of_lock.run_one_for(patience) != 0) {
    }
    BOOST_TEST(answer.get());
    of_handler.join();  // has no more work, although the lock is held
    got = lock_guard();
}

BOOST_AUTO_TEST_CASE(the_default_token_can_be_awaited) {
    const directory d;
    run(await_with_default_tokens(d / "x"));
    BOOST_TEST(d.empty());
}

BOOST_AUTO_TEST_CASE(the_lock_may_race_a_timer) {
    const directory d;
    std::size_t who = 9;
    run(await_the_lock_or_time(d / "x", std::chrono::milliseconds(patience), &who));
    BOOST_TEST(who == 0U);
    auto lock = fslock::acquire(d / "x");
    run(await_the_lock_or_time(d / "x", 10ms, &who));
    BOOST_TEST(who == 1U);
    BOOST_TEST(lock.verify());
    lock.release();
    BOOST_TEST(d.empty());
}

BOOST_AUTO_TEST_CASE(verifying_what_was_released_says_no_without_an_error) {
    const directory d;
    run(verify_what_is_gone(d / "x"));
}

BOOST_AUTO_TEST_CASE(releasing_what_is_not_there_is_told_only_if_it_was_lost) {
    const directory d;
    run(release_what_is_gone(d / "x"));
}

BOOST_AUTO_TEST_CASE(a_guard_may_be_released_while_it_is_verified) {
    const directory d;
    asio::thread_pool threads(2);
    for (int i = 0; i < 100; ++i) {
        auto coming = fslock::async_acquire(threads, d / "x", asio::use_future);
        auto lock = coming.get();
        auto answer = lock.async_verify(asio::use_future);
        lock = lock_guard();
        BOOST_CHECK_NO_THROW((void)answer.get());
    }
    threads.join();
    BOOST_TEST(d.empty());
}

BOOST_AUTO_TEST_SUITE_END()
