// Where and when handlers are called: on their associated executor, and never inside the initiating function.
#include <asio/bind_executor.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/strand.hpp>
#include <asio/thread_pool.hpp>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <tuple>

#include "crafted.hpp"
#include "fslock/fslock.hpp"
#include "support/directory.hpp"

namespace {

using namespace support;
namespace asio = fslock::asio;
using fslock::error_code;
using fslock::lock_guard;
using std::filesystem::path;

/// What operations are begun with: a context for new locks, a path, and a lock that is held on that context.
struct means {
    asio::io_context& io;
    path p;
    fslock::options o = minutes();
    lock_guard held;
    lock_guard of_others;
};

// ---- operations ------------------------------------------------------------------------------------------------

struct acquire {
    static void begin(means& m, auto handler) { fslock::async_acquire(m.io, m.p, m.o, std::move(handler)); }
};
struct acquire_where_the_handler_is {
    static void begin(means& m, auto handler) { fslock::async_acquire(m.p, m.o, std::move(handler)); }
};
struct try_acquire {
    static void begin(means& m, auto handler) {
        fslock::async_try_acquire(m.io, m.p, 2ms, m.o, std::move(handler));
    }
};
struct try_acquire_once {
    static void begin(means& m, auto handler) {
        fslock::async_try_acquire_once(m.io, m.p, m.o, std::move(handler));
    }
};
struct verify {
    static void begin(means& m, auto handler) { m.held.async_verify(std::move(handler)); }
};
struct release {
    static void begin(means& m, auto handler) { m.held.async_release(std::move(handler)); }
};
using operations =
    std::tuple<acquire, acquire_where_the_handler_is, try_acquire, try_acquire_once, verify, release>;

// ---- circumstances ---------------------------------------------------------------------------------------------

struct circumstance {
    const char* name;
    void (*bring_about)(means&);
};

void know_directory(means& m) { (void)fslock::try_acquire(m.p.parent_path() / "known", patience); }
void hold(means& m) { m.of_others = fslock::acquire(m.p, minutes()); }
void take_away(means& m) { std::filesystem::remove(m.held.path()); }

const circumstance circumstances[] = {
    {"a new directory", [](means&) {}},
    {"a free lock", know_directory},
    {"a lock that others hold", [](means& m) { know_directory(m), hold(m); }},
    {"a dead owner", [](means& m) { know_directory(m), peer_record(dead_pid).text("guard", "flock").write(m.p); }},
    {"a user's file", [](means& m) { know_directory(m), write_file(m.p, "a letter"); }},
    {"no directory", [](means& m) { m.p = m.p / "x"; }},
    {"bad options", [](means& m) { m.o.poll_interval = -1ms; }},
    {"a lock to be synced", [](means& m) { know_directory(m), m.o.durability = fslock::durability::full; }},
    {"a lock that is lost", take_away},
    {"a lock that is given back", [](means& m) { m.held.release(); }},
};

lock_guard acquired_on(asio::io_context& io, const path& p) {
    lock_guard got;
    fslock::async_acquire(io, p, minutes(), [&](error_code, lock_guard lock) { got = std::move(lock); });
    BOOST_TEST_REQUIRE(eventually([&] { return (void)io.poll(), static_cast<bool>(got); }));
    io.restart();
    return got;
}

// ---- handlers --------------------------------------------------------------------------------------------------

thread_local bool initiating = false;

/// What became of a handler.
template <class Home>
struct observations {
    explicit observations(const Home& h) : home(h) {}
    Home home;
    std::atomic<int> calls{0};
    std::atomic<bool> was_inline{false};
    std::atomic<bool> was_elsewhere{false};
    lock_guard lock;
};

/// A handler of any of the operations.
template <class Home>
struct observing {
    observations<Home>* seen;
    void operator()(error_code ec, lock_guard got) const {
        seen->lock = std::move(got);
        (*this)(ec);
    }
    void operator()(error_code ec, bool) const { (*this)(ec); }
    void operator()(error_code) const {
        if (initiating) seen->was_inline = true;
        if (!seen->home.running_in_this_thread()) seen->was_elsewhere = true;
        ++seen->calls;
    }
};

template <class Operation, class Handler>
void begin(means& m, Handler handler) {
    initiating = true;
    Operation::begin(m, std::move(handler));
    initiating = false;
}

/// Runs until the handler was called, and some more.
template <class Home>
void check_call(observations<Home>& seen, means& m, asio::io_context& other) {
    const auto poll = [&] {
        m.io.restart();
        other.restart();
        return m.io.poll() + other.poll();
    };
    for (int i = 0; i < 3; ++i) (void)poll();
    m.of_others = lock_guard();
    BOOST_TEST(eventually([&] { return (void)poll(), seen.calls == 1; }));
    for (int i = 0; i < 3; ++i) (void)poll();
    BOOST_TEST(seen.calls == 1);
    BOOST_TEST(!seen.was_inline);
    BOOST_TEST(!seen.was_elsewhere);
}

/// Begins the operation where its handler is at home: there, nothing but a post keeps it from being called at once.
template <class Operation, class Home>
void check_bound(means& m, const Home& home, asio::io_context& other) {
    observations<Home> seen(home);
    asio::post(home, [&] { begin<Operation>(m, asio::bind_executor(home, observing<Home>{&seen})); });
    check_call(seen, m, other);
}

/// The handler is at home where the lock is; that of an empty guard is on the system context.
template <class Operation>
void check_unbound(means& m, asio::io_context& other) {
    if (std::is_same_v<Operation, verify> || std::is_same_v<Operation, release>)
        if (!m.held) return;
    using home = asio::io_context::executor_type;
    observations<home> seen(m.io.get_executor());
    asio::post(m.io, [&] { begin<Operation>(m, observing<home>{&seen}); });
    check_call(seen, m, other);
}

/// Calls `check(means, other context)` in every circumstance.
template <class Check>
void everywhere(Check check) {
    for (const auto& c : circumstances) {
        BOOST_TEST_CONTEXT(c.name) {
            const directory of_lock, of_held;
            asio::io_context io, other;
            means m{io, of_lock / "x", minutes(), acquired_on(io, of_held / "held"), lock_guard()};
            c.bring_about(m);
            check(m, other);
        }
    }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(completion)

BOOST_AUTO_TEST_CASE_TEMPLATE(is_on_the_context_of_the_lock, Operation, operations) {
    everywhere([](means& m, asio::io_context& other) { check_bound<Operation>(m, m.io.get_executor(), other); });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(is_in_a_strand_of_that_context, Operation, operations) {
    everywhere([](means& m, asio::io_context& other) {
        check_bound<Operation>(m, asio::make_strand(m.io), other);
    });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(is_on_another_context, Operation, operations) {
    everywhere([](means& m, asio::io_context& other) { check_bound<Operation>(m, other.get_executor(), other); });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(is_in_a_strand_of_a_pool, Operation, operations) {
    asio::thread_pool threads(2);
    everywhere([&](means& m, asio::io_context& other) {
        check_bound<Operation>(m, asio::make_strand(threads), other);
    });
    threads.join();
}

BOOST_AUTO_TEST_CASE_TEMPLATE(is_where_the_lock_is_without_an_executor, Operation, operations) {
    if constexpr (!std::is_same_v<Operation, acquire_where_the_handler_is>)
        everywhere([](means& m, asio::io_context& other) { check_unbound<Operation>(m, other); });
}

BOOST_AUTO_TEST_SUITE_END()
