// Every behaviour again, with its context ended after each possible number of handlers.
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

/// Plays in a context that it ends after a number of handlers. Whether the play was whole by then.
using ground = bool (*)(run&, int handlers);

bool in_one_thread(run& r, int handlers) {
    asio::io_context io(1);
    const auto home = io.get_executor();
    r.play(home);
    return run_some(io, r, handlers);
}

bool in_a_strand(run& r, int handlers) {
    asio::io_context io(1);
    const auto home = asio::make_strand(io);
    r.play(home);
    return run_some(io, r, handlers);
}

int poll_one(asio::io_context& io) {
    io.restart();
    return static_cast<int>(io.poll_one());
}

/// The context of the locks dies first: its operations have work for the other.
bool in_two_contexts(run& r, int handlers) {
    asio::io_context io(1), of_locks(1);
    const auto home = io.get_executor(), home_of_locks = of_locks.get_executor();
    r.play(home, home_of_locks);
    const auto end = std::chrono::steady_clock::now() + patience;
    while (std::chrono::steady_clock::now() < end) {
        const int before = handlers;
        if (handlers > 0) handlers -= poll_one(io);
        if (handlers > 0) handlers -= poll_one(of_locks);
        if (handlers == 0) return false;
        if (r.is_stuck()) return true;
        if (handlers != before) continue;
        if (io.stopped() && of_locks.stopped()) return true;
        std::this_thread::sleep_for(100us);
    }
    return false;
}

/// What one thread does of it, while others do the same.
void run_share(asio::io_context& io, const run& r, std::atomic<int>& handlers) {
    while (handlers.fetch_sub(1) > 0 && !r.is_stuck())
        if (io.run_one_for(patience) == 0) return;
    io.stop();
}

template <class Executor>
bool in_threads_of(asio::io_context& io, const Executor& home, run& r, int handlers) {
    std::atomic<int> left{handlers};
    r.play(home);
    const auto share = [&] { run_share(io, r, left); };
    std::thread other(share), another(share);
    share();
    other.join();
    another.join();
    return left > 0 && io.stopped();
}

bool in_threads(run& r, int handlers) {
    asio::io_context io;
    const auto home = io.get_executor();
    return in_threads_of(io, home, r, handlers);
}

bool in_a_strand_of_threads(run& r, int handlers) {
    asio::io_context io;
    const auto home = asio::make_strand(io);
    return in_threads_of(io, home, r, handlers);
}

/// A pool does not count handlers: its moments are the calls of the player's handlers, and a little later.
template <class Executor>
bool in_pool_of(asio::thread_pool& threads, const Executor& home, run& r, int moment) {
    constexpr int moments_per_call = 4;
    r.play(home);
    const int calls = moment / moments_per_call;
    const auto end = std::chrono::steady_clock::now() + patience;
    while (r.told().calls() < calls && !r.is_over() && std::chrono::steady_clock::now() < end)
        std::this_thread::yield();
    for (int i = 0; i < moment % moments_per_call * 20; ++i) std::this_thread::yield();
    const bool whole = r.is_over();
    if (!whole || r.is_stuck()) threads.stop();
    threads.join();
    return whole;
}

bool in_a_pool(run& r, int moment) {
    asio::thread_pool threads(2);
    const auto home = threads.get_executor();
    return in_pool_of(threads, home, r, moment);
}

bool in_a_strand_of_a_pool(run& r, int moment) {
    asio::thread_pool threads(2);
    const auto home = asio::make_strand(threads);
    return in_pool_of(threads, home, r, moment);
}

void end_after_each_number(const scenario& s, ground play) {
    if (!can_be_played(s)) return;
    bool whole = false;
    for (int handlers = 0; !whole; ++handlers) {
        BOOST_TEST_REQUIRE(handlers < 10'000);
        run r(s);
        whole = play(r, handlers);
        r.told().cancel(asio::cancellation_type::all);  // what has a signal may outlive the context
        const auto problems = r.problems(whole);
        BOOST_TEST_REQUIRE(problems.empty(), s.name << ", after " << handlers << " handlers: " << problems);
    }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(interrupted_by_the_end)

BOOST_DATA_TEST_CASE(of_a_context_with_one_thread, scenarios(), s) { end_after_each_number(s, in_one_thread); }
BOOST_DATA_TEST_CASE(of_a_context_with_a_strand, scenarios(), s) { end_after_each_number(s, in_a_strand); }
BOOST_DATA_TEST_CASE(of_a_context_that_has_the_locks, scenarios(), s) { end_after_each_number(s, in_two_contexts); }
BOOST_DATA_TEST_CASE(of_a_context_with_threads, scenarios(), s) { end_after_each_number(s, in_threads); }
BOOST_DATA_TEST_CASE(of_a_context_with_a_strand_and_threads, scenarios(), s) {
    end_after_each_number(s, in_a_strand_of_threads);
}
BOOST_DATA_TEST_CASE(of_a_thread_pool, scenarios(), s) { end_after_each_number(s, in_a_pool); }
BOOST_DATA_TEST_CASE(of_a_thread_pool_with_a_strand, scenarios(), s) {
    end_after_each_number(s, in_a_strand_of_a_pool);
}

BOOST_AUTO_TEST_SUITE_END()
