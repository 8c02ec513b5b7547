// Every behaviour again, cancelled at each point where it may wait, and stopped and started again there.
#include <asio/io_context.hpp>
#include <asio/strand.hpp>
#include <asio/thread_pool.hpp>
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <thread>

#include "interrupted.hpp"

namespace {

using namespace interrupted;
using asio::cancellation_type;

constexpr cancellation_type types[] = {cancellation_type::terminal, cancellation_type::partial,
                                       cancellation_type::total};

void check_problems(run& r, const scenario& s, int handlers, const char* what) {
    const auto problems = r.problems(true);
    BOOST_TEST_REQUIRE(problems.empty(),
                       s.name << ", " << what << " after " << handlers << " handlers: " << problems);
}

/// Whether it was over by then.
bool cancel_after(int handlers, const scenario& s, cancellation_type how) {
    run r(s);
    bool over = false;
    {
        asio::io_context io(1);
        const auto home = io.get_executor();
        r.play(home);
        over = run_some(io, r, handlers);
        r.told().cancel(how);
        BOOST_TEST_REQUIRE(run_some(io, r, to_the_end), s.name << " does not end when it is cancelled");
        (void)io.poll();
        r.told().cancel(cancellation_type::all);  // there is nothing left to cancel
        (void)io.poll();
    }
    r.told().cancel(cancellation_type::all);  // nor is there a context
    check_problems(r, s, handlers, "cancelled");
    return over;
}

/// Whether it was over by then. What was cancelled has not come to its end when the context does.
bool cancel_and_end_after(int handlers, const scenario& s, int later) {
    run r(s);
    bool over = false;
    bool whole = false;
    {
        asio::io_context io(1);
        const auto home = io.get_executor();
        r.play(home);
        over = run_some(io, r, handlers);
        r.told().cancel(cancellation_type::terminal);
        whole = run_some(io, r, later);
    }
    const auto problems = r.problems(whole);
    BOOST_TEST_REQUIRE(problems.empty(), s.name << ", cancelled and ended after " << handlers << " and " << later
                                                << " more handlers: " << problems);
    return over;
}

/// From the outside, when `calls` handlers were called, or a little later.
bool cancel_from_outside(int moment, const scenario& s, cancellation_type how) {
    constexpr int moments_per_call = 3;
    run r(s);
    bool over = false;
    {
        asio::thread_pool threads(2);
        const auto home = asio::make_strand(threads);
        r.play(home);
        const int calls = moment / moments_per_call;
        BOOST_TEST_REQUIRE(eventually([&] { return r.told().calls() >= calls || r.is_over(); }));
        for (int i = 0; i < moment % moments_per_call * 20; ++i) std::this_thread::yield();
        over = r.is_over();
        r.told().cancel(how);
        BOOST_TEST_REQUIRE(eventually([&] { return r.is_over(); }), s.name << " does not end when it is cancelled");
        if (r.is_stuck()) threads.stop();
        threads.join();
    }
    check_problems(r, s, moment, "cancelled from outside");
    return over;
}

/// A wait that is cancelled some handlers, or so, after it began.
void end_the_endless_after(int handlers, const scenario& s, cancellation_type how) {
    run r(s);
    {
        asio::io_context io(1);
        const auto home = io.get_executor();
        r.play(home);
        while (!r.told().has_begun() && io.run_one_for(patience) != 0) {
        }
        for (int i = 0; i < handlers; ++i) (void)io.run_one_for(2ms);
        r.told().cancel(how);
        BOOST_TEST_REQUIRE(run_some(io, r, to_the_end), s.name << " does not end when it is cancelled");
    }
    check_problems(r, s, handlers, "cancelled");
}

void end_the_endless_from_outside(int moment, const scenario& s, cancellation_type how) {
    run r(s);
    {
        asio::thread_pool threads(2);
        const auto home = threads.get_executor();
        r.play(home);
        BOOST_TEST_REQUIRE(eventually([&] { return r.told().has_begun(); }));
        for (int i = 0; i < moment * 20; ++i) std::this_thread::yield();
        r.told().cancel(how);
        BOOST_TEST_REQUIRE(eventually([&] { return r.is_over(); }), s.name << " does not end when it is cancelled");
        threads.join();
    }
    check_problems(r, s, moment, "cancelled from outside");
}

/// Whether it was over by then.
bool stop_after(int handlers, const scenario& s) {
    run r(s);
    bool over = false;
    {
        asio::io_context io(1);
        const auto home = io.get_executor();
        r.play(home);
        over = run_some(io, r, handlers);
        io.stop();
        std::this_thread::sleep_for(2ms);  // heartbeats and polls are late
        io.restart();
        BOOST_TEST_REQUIRE(run_some(io, r, to_the_end), s.name << " does not end when it is started again");
    }
    check_problems(r, s, handlers, "stopped");
    return over;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(interrupted_by)

BOOST_DATA_TEST_CASE(a_cancellation_after_each_number_of_handlers, scenarios(), s) {
    if (!can_be_played(s)) return;
    for (const auto how : types)
        for (int handlers = 0; !cancel_after(handlers, s, how); ++handlers) BOOST_TEST_REQUIRE(handlers < 10'000);
}

BOOST_DATA_TEST_CASE(a_cancellation_and_the_end_of_the_context, scenarios(), s) {
    if (!can_be_played(s)) return;
    for (int later = 0; later < 2; ++later)
        for (int handlers = 0; !cancel_and_end_after(handlers, s, later); ++handlers)
            BOOST_TEST_REQUIRE(handlers < 10'000);
}

BOOST_DATA_TEST_CASE(a_cancellation_from_another_thread, scenarios(), s) {
    if (!can_be_played(s)) return;
    for (const auto how : types)
        for (int moment = 0; !cancel_from_outside(moment, s, how); ++moment) BOOST_TEST_REQUIRE(moment < 1'000);
}

BOOST_DATA_TEST_CASE(a_cancellation_that_ends_what_has_no_end, endless_scenarios(), s) {
    if (!can_be_played(s)) return;
    for (const auto how : types) {
        for (int handlers = 0; handlers < 12; ++handlers) end_the_endless_after(handlers, s, how);
        for (int moment = 0; moment < 6; ++moment) end_the_endless_from_outside(moment, s, how);
    }
}

BOOST_DATA_TEST_CASE(a_stop_after_each_number_of_handlers, scenarios(), s) {
    if (!can_be_played(s)) return;
    for (int handlers = 0; !stop_after(handlers, s); ++handlers) BOOST_TEST_REQUIRE(handlers < 10'000);
}

BOOST_AUTO_TEST_SUITE_END()
