#include "contenders.hpp"

#include <asio/awaitable.hpp>
#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <thread>

#include "fslock/fslock.hpp"

namespace bench {
namespace {

namespace asio = fslock::asio;
using namespace std::chrono_literals;
using path_list = std::vector<std::filesystem::path>;

/// One contender's decisions.
class player {
 public:
    player(arena& a, const workload& w, seat s)
        : a_(a), w_(w), seat_(s), chance_(static_cast<unsigned>(s.number + 1)) {}

    [[nodiscard]] bool over() const { return a_.over(); }
    std::size_t asks() {
        const auto last = static_cast<std::size_t>(w_.locks - 1);
        const auto k = last == 0 ? 0 : std::uniform_int_distribution<std::size_t>(0, last)(chance_);
        a_.asks(seat_);
        return k;
    }
    /// How long to hold lock `k`, which is ours now.
    std::chrono::microseconds enters(std::size_t k) { return a_.enters(seat_, k) ? w_.held : 0us; }
    void leaves(std::size_t k) { a_.leaves(seat_, k); }
    [[nodiscard]] std::chrono::microseconds thinks() const {
        return over() || (w_.greedy && seat_.number == 0) ? 0us : w_.think;
    }

 private:
    arena& a_;
    const workload& w_;
    const seat seat_;
    std::minstd_rand chance_;
};

void is_ready(arena& a, const seat& s, pid_t helper) {
    auto& mine = a.processes[static_cast<std::size_t>(s.process)];
    mine.helper = helper;
    mine.cpu_before_us = cpu_us(::getpid()) + (helper != 0 ? cpu_us(helper) : 0);
    ++a.ready;
    wait_until("all are ready", [&] { return a.go.load(); });
}

void await_dismissal(const arena& a) {
    wait_until(
        "it may end", [&] { return a.dismissed.load(); }, 5ms);
}

asio::awaitable<void> play(player me, const path_list& paths) {
    asio::steady_timer timer(co_await asio::this_coro::executor);
    while (!me.over()) {
        const auto k = me.asks();
        fslock::lock_guard lock = co_await fslock::async_acquire(paths[k]);
        if (const auto held = me.enters(k); held != 0us) {
            timer.expires_after(held);
            co_await timer.async_wait(asio::use_awaitable);
        }
        me.leaves(k);
        lock.release();
        if (const auto pause = me.thinks(); pause != 0us) {
            timer.expires_after(pause);
            co_await timer.async_wait(asio::use_awaitable);
        }
    }
}

void with_coroutines(arena& a, const workload& w, const path_list& paths, seat s) {
    asio::io_context io(1);
    is_ready(a, s, 0);
    for (int i = 0; i < w.coroutines; ++i, ++s.number)
        asio::co_spawn(io, play(player(a, w, s), paths), rethrow);
    io.run();
    await_dismissal(a);
}

void block(player me, blocking_peer& locks) {
    while (!me.over()) {
        const auto k = me.asks();
        locks.take(k);
        if (const auto held = me.enters(k); held != 0us) sleep_for(held);
        me.leaves(k);
        locks.give(k);
        if (const auto pause = me.thinks(); pause != 0us) sleep_for(pause);
    }
}

void with_threads(arena& a, const workload& w, const peer& who, const path_list& paths, seat s) {
    std::vector<std::unique_ptr<blocking_peer>> locks;
    for (int i = 0; i < w.coroutines; ++i) locks.push_back(who.make(paths));
    is_ready(a, s, locks.front()->helper());
    std::vector<std::thread> threads;
    for (auto& own : locks) {
        threads.emplace_back([&a, &w, s, &own] { block(player(a, w, s), *own); });
        ++s.number;
    }
    for (auto& t : threads) t.join();
    await_dismissal(a);
}

}  // namespace

void contend(arena& a, const workload& w, const peer& who, const path_list& paths, seat first) {
    a.processes[static_cast<std::size_t>(first.process)].bytes_before = anonymous_bytes(::getpid());
    if (who.make) {
        with_threads(a, w, who, paths, first);
    } else {
        with_coroutines(a, w, paths, first);
    }
}

}  // namespace bench
