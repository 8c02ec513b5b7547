// Work under a lock: how it ends, and what the lock does then.
#include <asio/bind_cancellation_slot.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <asio/thread_pool.hpp>
#include <asio/use_future.hpp>
#include <boost/test/unit_test.hpp>

#include "crafted.hpp"
#include "fslock/fslock.hpp"
#include "support/directory.hpp"
#include "support/run_until.hpp"

namespace {

using namespace support;
namespace asio = fslock::asio;
using fslock::errc;
using fslock::error_code;
using fslock::lock_guard;
using fslock::options;
using std::filesystem::path;

/// Never ends by itself; says that it was cancelled.
asio::awaitable<void> sleep_for_ever(bool& cancelled) {
    asio::steady_timer timer(co_await asio::this_coro::executor, std::chrono::hours(1));
    error_code ec;
    co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ec));
    cancelled = ec == asio::error::operation_aborted;
}

/// What it came to: the words of an exception, or none.
struct result {
    bool done = false;
    std::exception_ptr error;

    [[nodiscard]] error_code code() const {
        try {
            if (error) std::rethrow_exception(error);
        } catch (const fslock::system_error& e) {
            return e.code();
        } catch (...) {
            return std::make_error_code(std::errc::interrupted);
        }
        return {};
    }
};

auto into(result& r) {
    return [&r](const std::exception_ptr& e) {
        BOOST_TEST(!r.done);
        r.done = true;
        r.error = e;
    };
}

/// Work under a lock that nothing but a cancellation ends.
struct endless_work {
    void begin() {
        auto body = [this](lock_guard&) -> asio::awaitable<void> {
            running = true;
            co_await sleep_for_ever(cancelled);
        };
        fslock::async_with_lock(io, d / "x", never_beats(), body, asio::bind_cancellation_slot(stop.slot(), into(r)));
    }
    [[nodiscard]] bool ends_when_cancelled() {
        stop.emit(asio::cancellation_type::terminal);
        return run_until(io, [this] { return r.done; });
    }

    const directory d;
    bool running = false;
    bool cancelled = false;
    result r;
    asio::cancellation_signal stop;
    asio::io_context io;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(with_lock)

BOOST_AUTO_TEST_CASE(the_body_runs_under_the_lock_and_its_value_is_the_result) {
    const directory d;
    asio::io_context io;
    bool held = false;
    int value = 0;
    auto body = [&](lock_guard& lock) -> asio::awaitable<int> {
        held = lock && std::filesystem::exists(d / "x");
        co_return 42;
    };
    fslock::async_with_lock(io, d / "x", body, [&](const std::exception_ptr& e, int v) {
        BOOST_TEST(!e);
        BOOST_TEST(d.empty());
        value = v;
    });
    BOOST_TEST(value == 0);
    BOOST_TEST(run_until(io, [&] { return value != 0; }));
    BOOST_TEST(held);
    BOOST_TEST(value == 42);
}

BOOST_AUTO_TEST_CASE(every_form_of_the_call_is_the_same) {
    const directory d;
    asio::io_context io;
    int runs = 0;
    auto body = [&](lock_guard& lock) -> asio::awaitable<void> {
        runs += lock ? 1 : 100;
        co_return;
    };
    auto all = [&]() -> asio::awaitable<void> {
        const auto o = never_beats();
        co_await fslock::async_with_lock(d / "x", body);
        co_await fslock::async_with_lock(d / "x", o, body);
        co_await fslock::async_with_lock(io, d / "x", body);
        co_await fslock::async_with_lock(io.get_executor(), d / "x", o, body);
        co_await fslock::async_with_lock(d / "x", {}, body, asio::use_awaitable);
    };
    result r;
    asio::co_spawn(io, all(), into(r));
    BOOST_TEST(run_until(io, [&] { return r.done; }));
    BOOST_TEST(!r.error);
    BOOST_TEST(runs == 5);
    asio::thread_pool pool(1);
    fslock::async_with_lock(pool, d / "x", body, asio::use_future).get();
    BOOST_TEST(runs == 6);
    BOOST_TEST(d.empty());
}

BOOST_AUTO_TEST_CASE(a_loss_cancels_the_body_and_is_the_result, *boost::unit_test::precondition(linux_facilities)) {
    const directory d;
    asio::io_context io;
    bool running = false;
    bool cancelled = false;
    auto body = [&](lock_guard&) -> asio::awaitable<void> {
        running = true;
        co_await sleep_for_ever(cancelled);
    };
    result r;
    fslock::async_with_lock(io, d / "x", never_beats(), body, into(r));
    BOOST_TEST(run_until(io, [&] { return running; }));
    std::filesystem::remove(d / "x");
    BOOST_TEST(run_until(io, [&] { return r.done; }));
    BOOST_TEST(cancelled);
    BOOST_TEST((r.code() == errc::lost));
    BOOST_TEST(d.empty());
}

BOOST_AUTO_TEST_CASE(a_body_that_does_not_heed_its_cancellation_is_waited_for) {
    const directory d;
    asio::io_context io;
    bool ended = false;
    bool go_on = false;
    auto body = [&](lock_guard& lock) -> asio::awaitable<void> {
        co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
        std::filesystem::remove(lock.path());
        (void)lock.verify();
        asio::steady_timer timer(co_await asio::this_coro::executor);
        while (!go_on) {
            timer.expires_after(1ms);
            co_await timer.async_wait(asio::use_awaitable);
        }
        ended = true;
    };
    result r;
    fslock::async_with_lock(io, d / "x", never_beats(), body, into(r));
    (void)io.run_for(30ms);
    BOOST_TEST(!r.done);
    go_on = true;
    BOOST_TEST(run_until(io, [&] { return r.done; }));
    BOOST_TEST(ended);
    BOOST_TEST((r.code() == errc::lost));
}

BOOST_AUTO_TEST_CASE(an_exception_of_the_body_wins_and_the_lock_goes_back) {
    for (const bool lost : {false, true}) {
        const directory d;
        asio::io_context io;
        auto body = [&](lock_guard& lock) -> asio::awaitable<void> {
            if (lost) std::filesystem::remove(lock.path());
            throw std::runtime_error("the body's own");
            co_return;
        };
        result r;
        fslock::async_with_lock(io, d / "x", never_beats(), body, into(r));
        BOOST_TEST(run_until(io, [&] { return r.done; }));
        BOOST_CHECK_THROW(std::rethrow_exception(r.error), std::runtime_error);
        BOOST_TEST(d.empty());
    }
}

BOOST_AUTO_TEST_CASE(a_loss_that_is_found_at_the_end_is_the_result) {
    const directory d;
    asio::io_context io;
    auto o = never_beats();
    o.events = fslock::events::off;
    auto body = [&](lock_guard& lock) -> asio::awaitable<void> {
        std::filesystem::remove(lock.path());
        co_return;
    };
    result r;
    fslock::async_with_lock(io, d / "x", o, body, into(r));
    BOOST_TEST(run_until(io, [&] { return r.done; }));
    BOOST_TEST((r.code() == errc::lost));
}

BOOST_AUTO_TEST_CASE(a_body_may_give_the_lock_back_early_and_go_on) {
    const directory d;
    asio::io_context io;
    bool ended = false;
    auto body = [&](lock_guard& lock) -> asio::awaitable<void> {
        lock.release();
        asio::steady_timer timer(co_await asio::this_coro::executor, 10ms);
        co_await timer.async_wait(asio::use_awaitable);
        ended = true;
    };
    result r;
    fslock::async_with_lock(io, d / "x", never_beats(), body, into(r));
    BOOST_TEST(run_until(io, [&] { return r.done; }));
    BOOST_TEST(!r.error);
    BOOST_TEST(ended);
}

BOOST_AUTO_TEST_CASE(a_cancellation_ends_the_wait_for_the_lock) {
    using asio::cancellation_type;
    for (const auto how : {cancellation_type::total, cancellation_type::partial, cancellation_type::terminal}) {
        const directory d;
        asio::io_context io;
        auto owner = fslock::acquire(d / "x", minutes());
        bool ran = false;
        auto body = [&](lock_guard&) -> asio::awaitable<void> {
            ran = true;
            co_return;
        };
        asio::cancellation_signal stop;
        result r;
        fslock::async_with_lock(io, d / "x", body, asio::bind_cancellation_slot(stop.slot(), into(r)));
        (void)io.run_for(10ms);
        stop.emit(how);
        BOOST_TEST(run_until(io, [&] { return r.done; }));
        BOOST_TEST((r.code() == asio::error::operation_aborted));
        BOOST_TEST(!ran);
        BOOST_TEST(owner.verify());
    }
}

BOOST_AUTO_TEST_CASE(a_cancellation_reaches_the_body_and_the_lock_goes_back) {
    endless_work w;
    w.begin();
    BOOST_TEST(run_until(w.io, [&] { return w.running; }));
    BOOST_TEST(w.ends_when_cancelled());
    BOOST_TEST(w.cancelled);
    BOOST_TEST(w.d.empty());
}

BOOST_AUTO_TEST_CASE(a_cancellation_after_any_number_of_handlers_ends_work_without_end) {
    for (const bool known : {true, false}) {
        bool all = false;
        for (int handlers = 0; !all; ++handlers) {
            BOOST_TEST_REQUIRE(handlers < 1'000);
            endless_work w;
            if (known) (void)fslock::try_acquire(w.d / "known", patience);
            w.begin();
            for (int i = 0; i < handlers; ++i) (void)w.io.run_one_for(patience);
            all = w.running;
            BOOST_TEST_REQUIRE(w.ends_when_cancelled(), "goes on after " << handlers << " handlers");
            BOOST_TEST((w.running ? w.cancelled : w.r.code() == asio::error::operation_aborted));
            BOOST_TEST(w.d.empty());
        }
    }
}

BOOST_AUTO_TEST_CASE(a_body_may_cancel_its_own_work) {
    const directory d;
    asio::io_context io;
    asio::cancellation_signal stop;
    bool cancelled = false;
    auto body = [&](lock_guard&) -> asio::awaitable<void> {
        stop.emit(asio::cancellation_type::terminal);
        co_await sleep_for_ever(cancelled);
    };
    result r;
    fslock::async_with_lock(io, d / "x", never_beats(), body, asio::bind_cancellation_slot(stop.slot(), into(r)));
    BOOST_TEST(run_until(io, [&] { return r.done; }));
    BOOST_TEST((r.code() == asio::error::operation_aborted));
    BOOST_TEST(d.empty());
}

BOOST_AUTO_TEST_CASE(a_lock_that_cannot_be_had_is_the_result) {
    const directory d;
    asio::io_context io;
    bool ran = false;
    auto body = [&](lock_guard&) -> asio::awaitable<void> {
        ran = true;
        co_return;
    };
    result r;
    fslock::async_with_lock(io, d / "none/x", body, into(r));
    BOOST_TEST(run_until(io, [&] { return r.done; }));
    BOOST_TEST((r.code() == std::errc::no_such_file_or_directory));
    BOOST_TEST(!ran);
}

BOOST_AUTO_TEST_CASE(what_is_said_of_the_lock_begins_with_its_path) {
    const directory d;
    auto lose = [](lock_guard& lock) -> asio::awaitable<void> {
        std::filesystem::remove(lock.path());
        (void)lock.verify();
        co_return;
    };
    for (const path& p : {d / "x", d / "none/x"}) {
        asio::io_context io;
        result r;
        fslock::async_with_lock(io, p, never_beats(), lose, into(r));
        BOOST_TEST_REQUIRE(run_until(io, [&] { return r.done; }));
        BOOST_CHECK_EXCEPTION(std::rethrow_exception(r.error), fslock::system_error, [&](const std::exception& e) {
            return std::string_view(e.what()).starts_with(p.string() + ": ");
        });
    }
}

BOOST_AUTO_TEST_CASE(a_context_may_end_after_any_number_of_handlers_of_work_under_a_lock) {
    bool all = false;
    for (int handlers = 0; !all; ++handlers) {
        BOOST_TEST_REQUIRE(handlers < 1'000);
        const directory d;
        (void)fslock::try_acquire(d / "known", patience);
        const auto trace = std::make_shared<int>(0);
        {
            asio::io_context io;
            auto body = [trace](lock_guard& lock) -> asio::awaitable<void> {
                asio::steady_timer timer(co_await asio::this_coro::executor, 1ms);
                co_await timer.async_wait(asio::use_awaitable);
                if (!lock.verify()) throw std::logic_error("not ours");
            };
            fslock::async_with_lock(io, d / "x", never_beats(), std::move(body),
                                    [trace](const std::exception_ptr& e) { *trace = e ? -1 : 1; });
            for (int i = 0; i < handlers && *trace == 0; ++i) (void)io.run_one_for(patience);
            all = *trace == 1;
            BOOST_TEST(*trace >= 0);
        }
        BOOST_TEST(trace.use_count() == 1);
        BOOST_TEST(d.empty(), "left behind after " << handlers << " handlers");
    }
}

BOOST_AUTO_TEST_SUITE_END()
