// Ten thousand coroutines of one process wait for one lock: what that costs while nothing happens, in memory,
// and when their turns come.
#include <asio/awaitable.hpp>
#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/read.hpp>
#include <asio/steady_timer.hpp>
#include <atomic>
#include <functional>

#include "fslock/fslock.hpp"
#include "process.hpp"
#include "system_calls.hpp"

namespace {

namespace asio = fslock::asio;
using namespace std::chrono_literals;

constexpr int crowd = 10'000;

struct page {
    std::atomic<bool> held;  ///< by another process
    std::atomic<bool> give_back;
    std::atomic<int> waiting;
    std::atomic<int> served;
    std::atomic<bool> out_of_order;
    std::atomic<double> heap_bytes;  ///< of one waiter
    std::atomic<double> resident_bytes;
    std::atomic<double> turn_us;
    std::atomic<double> cycle_us;  ///< uncontended: before and after the turns
};

/// Holds the lock until told.
void hold(page& p, const std::filesystem::path& path) {
    const auto lock = fslock::acquire(path);
    p.held = true;
    bench::wait_until(
        "the lock is to be given back", [&] { return p.give_back.load(); }, 1ms);
}

// ---- the crowd -------------------------------------------------------------------------------------------

/// The process that is measured. A pipe tells it when to go on: waiting for that costs no call.
class measured {
 public:
    measured(page& p, std::filesystem::path path, int told)
        : page_(p), path_(std::move(path)), told_(io_, told) {}

    void run() {
        asio::co_spawn(io_, script(), bench::rethrow);
        io_.run();
    }

 private:
    asio::awaitable<void> script() {
        page_.cycle_us = co_await cycle();
        ask();
        asio::post(io_, [this] { page_.waiting = asked_; });
        co_await go_on();
        while (asked_ < crowd) ask();
        asio::post(io_, [this] { page_.waiting = asked_; });
    }

    /// An uncontended acquisition and its release.
    asio::awaitable<double> cycle() {
        constexpr int cycles = 2000;
        const std::filesystem::path path(path_.native() + ".free");
        for (int i = 0; i < 100; ++i) fslock::lock_guard lock = co_await fslock::async_acquire(path);
        const auto begin = bench::now_ns();
        for (int i = 0; i < cycles; ++i) fslock::lock_guard lock = co_await fslock::async_acquire(path);
        co_return bench::microseconds_between(begin, bench::now_ns()) / cycles;
    }

    void ask() { asio::co_spawn(io_, wait_and_leave(asked_++), bench::rethrow); }

    asio::awaitable<void> wait_and_leave(int number) {
        fslock::lock_guard lock = co_await fslock::async_acquire(path_);
        if (number != served_++) page_.out_of_order = true;
        if (number == 0) {
            page_.served = 1;
            co_await go_on();
            began_ns_ = bench::now_ns();
        }
        if (served_ < crowd) co_return;
        page_.turn_us = bench::microseconds_between(began_ns_, bench::now_ns()) / (crowd - 1);
        lock.release();
        const double after = co_await cycle();
        page_.cycle_us = (page_.cycle_us + after) / 2;
        page_.served = served_;
    }

    asio::awaitable<void> go_on() {
        char c = 0;
        co_await told_.async_read_some(asio::buffer(&c, 1), asio::use_awaitable);
    }

    page& page_;
    const std::filesystem::path path_;
    asio::io_context io_{1};
    asio::posix::stream_descriptor told_;
    int asked_ = 0;
    int served_ = 0;
    std::int64_t began_ns_ = 0;
};

std::string calls_text(const bench::calls& c) {
    return std::to_string(c.all);
}

std::string what_was_called(const char* who, const bench::calls& c) {
    return bench::text("%s: %llu looks, %llu writes, %llu turns of the event loop", who,
                       static_cast<unsigned long long>(c.opens), static_cast<unsigned long long>(c.writes),
                       static_cast<unsigned long long>(c.sleeps));
}

void measure_calls(const bench::setting& here, bench::table& results) {
    auto& p = bench::shared_page<page>();
    int pipe[2];
    if (::pipe(pipe) != 0) bench::fail("pipe");
    const auto path = here / "lock";
    const auto window = std::chrono::milliseconds(here.count(4000, 1000));
    const auto tell = [&] {
        if (::write(pipe[1], "g", 1) != 1) bench::fail("write");
    };
    const auto count = [&](const bench::child& c) {
        bench::sleep_for(300ms);
        bench::call_counter counter({c.pid()});
        return counter.count_for(window);
    };

    const bench::child holder([&] { hold(p, path); });
    bench::wait_until("the lock is held", [&] { return p.held.load(); });
    const bench::child many([&] { measured(p, path, pipe[0]).run(); });
    bench::wait_until("one waits", [&] { return p.waiting == 1; });
    const auto one = count(many);
    tell();
    bench::wait_until("all wait", [&] { return p.waiting == crowd; });
    const auto all = count(many);
    p.give_back = true;
    bench::wait_until("the first one has it", [&] { return p.served == 1; });
    const auto held = count(many);
    tell();
    bench::wait_until(
        "all were served", [&] { return p.served == crowd; }, 1ms);

    // One look more or less is chance, since looks are spread in time; one call of every waiter would be 9,999.
    constexpr std::uint64_t a_look = 32;
    const double seconds = static_cast<double>(window.count()) / 1e3;
    const double to_one = static_cast<double>(all.all) / std::max(1.0, static_cast<double>(one.all));
    results.note(bench::text("system calls of the process in %.0f s, counted by ptrace", seconds));
    results.add({"1 waits (the contender, who looks)", calls_text(one), "", "1.00 x"});
    results.note(what_was_called("1 waits", one));
    results.add({"10,000 wait",
                 calls_text(all),
                 "",
                 bench::ratio_text(to_one),
                 {{"as 1 does, +- 25 % and a look", all.all <= one.all * 5 / 4 + a_look}}});
    results.note(what_was_called("10,000 wait", all));
    results.add({"1 of this process holds, 9,999 wait",
                 calls_text(held),
                 "",
                 bench::ratio_text(static_cast<double>(held.all) / std::max(1.0, static_cast<double>(one.all))),
                 {{"no look, 16 calls a heartbeat", held.opens == 0 && held.all <= 16 * (held.writes + 1)}}});
    results.note(what_was_called("1 holds", held));
    results.note("hand-over from coroutine to coroutine of the process, one after the other");
    results.add({"an uncontended cycle", bench::time_text(p.cycle_us), "", "1.00 x"});
    results.add({"a turn, of 10,000",
                 bench::time_text(p.turn_us),
                 "",
                 bench::ratio_text(p.turn_us / p.cycle_us),
                 {{"< 2 x", p.turn_us < 2 * p.cycle_us}, {"first come, first served", !p.out_of_order}}});
}

// ---- memory ----------------------------------------------------------------------------------------------

using start_waiting = std::function<void(asio::io_context& io, const std::filesystem::path& path)>;

asio::awaitable<void> wait_for_lock(const std::filesystem::path& path) {
    fslock::lock_guard lock = co_await fslock::async_acquire(path);
}

asio::awaitable<void> wait_for_timer(asio::steady_timer& never) {
    co_await never.async_wait(asio::use_awaitable);
}

/// Starts a few for nothing, then the crowd; all of them have to come to rest.
void grow(page& p, const std::filesystem::path& path, const start_waiting& start) {
    asio::io_context io(1);
    const auto work = asio::make_work_guard(io);
    for (int i = 0; i < 10; ++i) start(io, path);
    io.run_for(50ms);
    const double heap = bench::heap_in_use();
    const double pages = bench::anonymous_bytes(::getpid());
    for (int i = 0; i < crowd; ++i) start(io, path);
    io.run_for(200ms);
    p.heap_bytes = (bench::heap_in_use() - heap) / crowd;
    p.resident_bytes = (bench::anonymous_bytes(::getpid()) - pages) / crowd;
    ::_exit(0);
}

void measure_memory(const bench::setting& here, bench::table& results) {
    auto& p = bench::shared_page<page>();
    const auto path = here / "lock-of-the-size-of-a-usual-path";
    const bench::child holder([&] { hold(p, path); });
    bench::wait_until("the lock is held", [&] { return p.held.load(); });
    const auto bytes_of = [&](const start_waiting& start) {
        p.heap_bytes = 0;
        bench::child c([&] { grow(p, path, start); });
        c.reap();
        if (p.heap_bytes == 0) throw std::runtime_error("memory was not measured");
        return p.heap_bytes.load();
    };
    const auto add = [&](const char* what, double heap, double reference, bool bounded) {
        bench::row r{what, bench::text("%.0f bytes", heap), "", bench::ratio_text(heap / reference)};
        if (bounded) r.bounds = {{"< 2048", heap < 2048}};
        results.add(r);
    };
    results.note("memory of one of 10,000 waiters, growth of the heap");
    const double timers = bytes_of([&](asio::io_context& io, const std::filesystem::path&) {
        static asio::steady_timer never(io, asio::steady_timer::time_point::max());
        asio::co_spawn(io, wait_for_timer(never), bench::rethrow);
    });
    add("a coroutine that waits for a timer of Asio", timers, timers, false);
    const double callbacks = bytes_of([](asio::io_context& io, const std::filesystem::path& at) {
        fslock::async_acquire(io, at, [](fslock::error_code, const fslock::lock_guard&) {});
    });
    add("async_acquire with a callback", callbacks, timers, true);
    const double coroutines = bytes_of([](asio::io_context& io, const std::filesystem::path& at) {
        asio::co_spawn(io, wait_for_lock(at), bench::rethrow);
    });
    add("a coroutine in async_acquire, its frames included", coroutines, timers, true);
    results.note(bench::text("the last one: %.0f bytes by resident pages", p.resident_bytes.load()));
}

void measure(const bench::setting& here, bench::table& results) {
    measure_calls(here, results);
    measure_memory(here, results);
}

}  // namespace

int main(int argc, char** argv) {
    return bench::run(argc, argv, "crowd", measure);
}
