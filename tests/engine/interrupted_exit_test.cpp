// Guards in static storage, which go when the program ends: before their context, after it, and in it.
#include <asio/awaitable.hpp>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <asio/thread_pool.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/use_future.hpp>
#include <boost/test/unit_test.hpp>
#include <future>

#include "crafted.hpp"
#include "fslock/fslock.hpp"
#include "support/child.hpp"
#include "support/directory.hpp"

namespace {

using namespace support;
namespace asio = fslock::asio;
using fslock::lock_guard;
using std::filesystem::path;

constexpr auto file_of_proof = "played";

/// Made before the program begins, so they go after all that is made in it: contexts, and what the library or a library
/// of its has in static storage from its first use on.
lock_guard after_context, after_system_context, after_pool, blocking, without_witness;

asio::awaitable<void> hold_for_ever(path p, bool* held) {
    const auto lock = co_await fslock::async_acquire(p, minutes(), asio::use_awaitable);
    *held = true;
    asio::steady_timer timer(co_await asio::this_coro::executor, std::chrono::hours(1));
    co_await timer.async_wait(asio::use_awaitable);
}

void run_until(asio::io_context& io, const std::function<bool()>& condition) {
    BOOST_TEST_REQUIRE(eventually([&] { return (void)io.poll(), condition(); }));
}

lock_guard acquired_on(asio::io_context& io, const path& p) {
    lock_guard got;
    fslock::async_acquire(io, p, minutes(), [&](fslock::error_code, lock_guard lock) { got = std::move(lock); });
    run_until(io, [&] { return static_cast<bool>(got); });
    io.restart();
    return got;
}

/// The program that ends. What is made first goes last. Threads of the library go on until the very end.
void play(const path& d) {
    static asio::io_context io;
    static asio::thread_pool threads(1);
    static lock_guard before_context, before_pool;
    after_context = acquired_on(io, d / "after context");
    before_context = acquired_on(io, d / "before context");
    after_pool = fslock::async_acquire(threads, d / "after pool", minutes(), asio::use_future).get();
    before_pool = fslock::async_acquire(threads, d / "before pool", minutes(), asio::use_future).get();
    after_system_context = fslock::async_acquire(d / "after system context", minutes(), asio::use_future).get();
    blocking = fslock::acquire(d / "blocking", minutes());
    auto o = minutes();
    o.witness = fslock::witness::off;
    without_witness = fslock::acquire(d / "without witness", o);
    bool held = false;
    asio::co_spawn(io, hold_for_ever(d / "coroutine", &held), asio::detached);
    run_until(io, [&] { return held; });
    const directory elsewhere;  // is still looked at when the program ends
    fslock::async_acquire(io, elsewhere / "x", minutes(), asio::detached);
    write_file(d / file_of_proof, "");
}

}  // namespace

BOOST_AUTO_TEST_SUITE(interrupted_by_exit)

BOOST_AUTO_TEST_CASE(of_a_program_with_guards_in_static_storage) {
    const auto& program = boost::unit_test::framework::master_test_suite();
    if (program.argc > 1) {  // this is the program
        play(program.argv[1]);
        return;
    }
    const directory d;
    const std::string part = "--run_test=" + boost::unit_test::framework::current_test_case().full_name();
    BOOST_TEST(run_program({program.argv[0], part, "--log_level=error", "--report_level=no", "--", d.path()}) == 0);
    BOOST_TEST(d.names() == std::vector<std::string>{file_of_proof}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
