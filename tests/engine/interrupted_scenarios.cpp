// The table of behaviours. A new one is a function and a line in it.
#include <asio/steady_timer.hpp>

#include "interrupted.hpp"

namespace interrupted {
namespace {

using asio::awaitable;
using fslock::event_kind;

constexpr auto soon = 3ms;

// ---- settings --------------------------------------------------------------------------------------------------

/// Has its record a witness, which nobody keeps: every build of the library knows that its owner is gone.
crafted_record dead() { return peer_record(dead_pid).text("guard", "flock"); }

void new_directory(setting&) {}
void known_directory(setting& s) { s.know_directory(); }
void held_elsewhere(setting& s) { s.hold("x"), s.know_directory(); }

void held_by_living_in_new_directory(setting& s) { s.craft("x", peer_record(living_process())); }
void held_by_living(setting& s) { held_by_living_in_new_directory(s), s.know_directory(); }
void held_by_dead(setting& s) { s.craft("x", dead()), s.know_directory(); }
void held_by_dead_process(setting& s) { s.craft("x", peer_record(dead_pid)), s.know_directory(); }
void held_by_dead_in_new_directory(setting& s) { s.craft("x", dead()); }

/// Somebody died while he removed the record of a dead owner.
void dead_token(setting& s) { held_by_dead(s), s.craft(".x.reclaim", dead()); }
/// Somebody who lives does that now, and nobody else may.
void living_token(setting& s) {
    s.craft("x", dead().line(), true);
    s.craft(".x.reclaim", peer_record(living_process()).line(), true);
    s.know_directory();
}

void damaged(setting& s) { s.craft("x", "{\"pid\":47"), s.know_directory(); }
void users_file(setting& s) { s.craft("x", "a letter to a friend\n", true), s.know_directory(); }

// ---- getting and giving back -----------------------------------------------------------------------------------

awaitable<void> acquire_verify_release(stage s) {
    auto g = co_await s.acquire("x");
    if (!g.lock) co_return;
    const auto v = co_await s.verify(g.lock);
    s.expect(v.yes && !v.error, "the lock is verified");
    const auto error = co_await s.release(std::move(g.lock));
    s.expect(!error, "the lock is released");
}

awaitable<void> hold_in_frame(stage s) {
    const auto g = co_await s.acquire("x");
    s.expect(static_cast<bool>(g.lock), "the lock is free");
    co_await s.pause(soon);  // some heartbeats
}

awaitable<void> hold_without_witness(stage s) {
    auto o = s.quick();
    o.witness = fslock::witness::off;
    auto g = co_await s.acquire(s.at("x"), o);
    if (!g.lock) co_return;
    co_await s.pause(soon);
    s.expect(g.lock.verify(), "a lock without a witness is kept fresh");
}

awaitable<void> take_turns(stage s) {
    for (int i = 0; i < 2; ++i) co_await acquire_verify_release(s);
}

/// Each has a lock of its own and wants one that all want.
awaitable<void> hold_two(stage s) {
    const auto own = co_await s.acquire("own" + std::to_string(s.player));
    const auto common = co_await s.acquire("common");
    s.expect(own.lock && common.lock, "both locks are to be had");
}

awaitable<void> hold_many(stage s) {
    std::vector<lock_guard> all;
    for (int i = 0; i < 5; ++i) {
        auto g = co_await s.acquire("x" + std::to_string(i));
        s.expect(static_cast<bool>(g.lock), "every lock is free");
        all.push_back(std::move(g.lock));
    }
    co_await s.pause(soon);
}

awaitable<void> acquire_durably(stage s) {
    auto o = s.quick();
    o.durability = fslock::durability::full;
    auto g = co_await s.acquire(s.at("x"), o);
    s.expect(static_cast<bool>(g.lock), "the lock is free");
    (void)co_await s.release(std::move(g.lock));
}

awaitable<void> lose(stage s) {
    const auto o = s.quick(event_kind::lost, [] {});
    auto g = co_await s.acquire(s.at("x"), o);
    if (!g.lock) co_return;
    s.there->remove("x");
    while (!g.lock.lost()) co_await s.pause(1ms);  // a heartbeat finds out
    const auto v = co_await s.verify(g.lock);
    s.expect(!v.yes && !v.error, "a lost lock is not ours");
    const auto error = co_await s.release(std::move(g.lock));
    s.expect(error == fslock::errc::lost, "its release says so");
}

// ---- waiting ---------------------------------------------------------------------------------------------------

/// Waits for an owner who gives back when he hears that somebody waits.
awaitable<void> wait_with(stage s, fslock::options o) {
    auto g = co_await s.acquire(s.at("x"), o);
    s.expect(static_cast<bool>(g.lock), "the owner gave it back");
    (void)co_await s.release(std::move(g.lock));
}

awaitable<void> wait_for_release(stage s) {
    const auto o = s.quick(event_kind::waiting, [s] { s.there->release_held(); });
    return wait_with(s, o);
}

awaitable<void> wait_durably(stage s) {
    auto o = s.quick(event_kind::waiting, [s] { s.there->release_held(); });
    o.durability = fslock::durability::full;
    return wait_with(s, o);
}

awaitable<void> wait_with_limit(stage s) {
    const auto o = s.quick(event_kind::waiting, [s] { s.there->release_held(); });
    const auto g = co_await s.try_acquire(s.at("x"), patience, o);
    s.expect(static_cast<bool>(g.lock), "there was time enough");
}

awaitable<void> wait_for_removal(stage s) {
    const auto o = s.quick(event_kind::waiting, [s] { s.there->remove("x"); });
    return wait_with(s, o);
}

awaitable<void> wait_for_myself(stage s) {
    const auto first = std::make_shared<got>();
    *first = co_await s.acquire("x");
    if (!first->lock) co_return;
    const auto o = s.quick(event_kind::waiting, [first] { first->lock = lock_guard(); });
    const auto second = co_await s.acquire(s.at("x"), o);
    s.expect(static_cast<bool>(second.lock), "a listener gave it back");
}

awaitable<void> wait_out_the_grace(stage s) {
    auto o = s.quick();
    o.malformed_grace = soon;
    return wait_with(s, o);
}

awaitable<void> acquire_in_one_attempt(stage s) {
    const auto o = s.quick();
    const auto g = co_await s.try_acquire(s.at("x"), 0ms, o);
    s.expect(static_cast<bool>(g.lock), "neither a look at the directory nor a dead owner costs the attempt");
}

// ---- in vain ---------------------------------------------------------------------------------------------------

awaitable<void> ask_in_vain_with(stage s, fslock::options o) {
    for (const auto limit : {soon, milliseconds(0), milliseconds(1)}) {
        const auto g = co_await s.try_acquire(s.at("x"), limit, o);
        s.expect(g.nothing(), "the owner keeps it");
    }
}

awaitable<void> ask_in_vain(stage s) { return ask_in_vain_with(s, s.quick()); }

awaitable<void> ask_in_vain_durably(stage s) {
    auto o = s.quick();
    o.durability = fslock::durability::full;
    return ask_in_vain_with(s, o);
}

awaitable<void> ask_in_vain_behind_myself(stage s) {
    const auto g = co_await s.acquire("x");
    if (g.lock) co_await ask_in_vain(s);
}

/// Backs off for longer than it has.
awaitable<void> ask_in_vain_behind_a_token(stage s) {
    const auto o = s.quick(event_kind::reclaim_blocked, [] {});
    const auto g = co_await s.try_acquire(s.at("x"), soon, o);
    s.expect(g.nothing(), "the token blocks");
}

awaitable<void> ask_in_missing_directory(stage s) {
    const auto g = co_await s.acquire("no/x");
    s.expect(g.error == std::errc::no_such_file_or_directory, "a missing directory is an error");
}

awaitable<void> ask_for_users_file(stage s) {
    const auto g = co_await s.acquire("x");
    s.expect(g.error == fslock::errc::not_a_lock_file, "a file that is no lock is an error");
}

awaitable<void> ask_for_reserved_name(stage s) {
    const auto g = co_await s.acquire(".x.reclaim");
    s.expect(g.error == fslock::errc::reserved_name, "the name of a token is an error");
}

// ---- without end -----------------------------------------------------------------------------------------------

awaitable<void> wait_for_ever_with(stage s, fslock::options o) {
    const auto g = co_await s.acquire(s.at("x"), o);
    if (g.error != asio::error::operation_aborted) s.told->wrong("a wait without end was not aborted");
}

awaitable<void> wait_for_ever(stage s) { return wait_for_ever_with(s, s.quick()); }

awaitable<void> wait_for_ever_durably(stage s) {
    auto o = s.quick();
    o.durability = fslock::durability::full;
    return wait_for_ever_with(s, o);
}

/// Its player ends when it does.
awaitable<void> work_for_ever(stage s) {
    auto body = [](lock_guard&) -> awaitable<void> {
        co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
        asio::steady_timer timer(co_await asio::this_coro::executor, std::chrono::hours(1));
        co_await timer.async_wait(asio::use_awaitable);
    };
    const auto start = [&](auto handler) {
        fslock::async_with_lock(s.locks, s.at("x"), s.quick(), body, std::move(handler));
    };
    const auto over = std::make_shared<asio::steady_timer>(s.io, asio::steady_timer::time_point::max());
    s.begin<std::exception_ptr>(start, [s, over](const std::exception_ptr& e) {
        if (!e) s.told->wrong("work without end was not aborted");
        over->cancel();
    });
    error_code ec;
    co_await over->async_wait(asio::redirect_error(asio::use_awaitable, ec));
}

// ---- guards in odd places --------------------------------------------------------------------------------------

/// The timer never expires, or as the context does.
awaitable<void> keep_in_uncalled_handler(stage s) {
    auto g = co_await s.acquire("x");
    auto timer = std::make_unique<asio::steady_timer>(s.io, std::chrono::hours(1));
    auto& t = *timer;
    t.async_wait([timer = std::move(timer), lock = std::move(g.lock), trace = s.told](error_code) {});
}

/// Waits for "x" with a handler that has `lock`.
void wait_and_keep(const stage& s, lock_guard lock) {
    const auto start = [s](auto handler) {
        fslock::async_acquire(s.locks, s.at("x"), s.quick(), std::move(handler));
    };
    auto handler = [s, lock = std::move(lock)](got second) { s.check(second); };
    s.begin<got>(start, std::move(handler));
}

awaitable<void> keep_in_handler_that_waits_for_it(stage s) {
    auto g = co_await s.acquire("x");
    if (!g.lock) co_return;
    wait_and_keep(s, std::move(g.lock));
}

awaitable<void> keep_in_handler_that_waits_elsewhere(stage s) {
    auto g = co_await s.acquire("own");
    wait_and_keep(s, std::move(g.lock));
}

awaitable<void> keep_in_listener(stage s) {
    auto g = co_await s.acquire("own");
    const auto own = std::make_shared<lock_guard>(std::move(g.lock));
    const auto o = s.quick(event_kind::held_long, [own] {});
    const auto second = co_await s.acquire(s.at("x"), o);
    s.expect(static_cast<bool>(second.lock), "the lock is free");
    co_await s.pause(soon);
}

/// With a listener, which must not outlive the context.
awaitable<void> keep_outside(stage s) {
    const auto o = s.quick(event_kind::lost, [] {});
    auto g = co_await s.acquire(s.at("x"), o);
    if (g.lock) s.there->keep(std::move(g.lock));
}

/// The guard goes while both are under way.
awaitable<void> release_what_is_verified(stage s) {
    auto g = co_await s.acquire("x");
    if (!g.lock) co_return;
    s.begin<said>([&g](auto handler) { g.lock.async_verify(std::move(handler)); },
                  [s](const said& v) { s.expect(!v.error, "verifying is no error"); });
    s.begin<fslock::error_code>([&g](auto handler) { g.lock.async_release(std::move(handler)); },
                                [s](error_code ec) { s.expect(!ec, "the release succeeds"); });
}

/// Whether the record goes, or only the guard.
awaitable<void> wait_for_the_loss(stage s, bool lost) {
    auto g = co_await s.acquire("x");
    if (!g.lock) co_return;
    s.begin<fslock::error_code>([&g](auto handler) { g.lock.async_wait_lost(std::move(handler)); },
                                [s, lost](error_code ec) {
                                    s.expect(!ec == lost, "a wait for the loss ends with it, or with the guard");
                                });
    co_await s.pause(1ms);
    if (lost) s.there->remove("x");
    while (lost && !g.lock.lost()) co_await s.pause(1ms);
}

awaitable<void> wait_for_a_loss(stage s) { return wait_for_the_loss(s, true); }
awaitable<void> wait_for_a_loss_that_does_not_come(stage s) { return wait_for_the_loss(s, false); }

awaitable<void> work_under_the_lock(stage s) {
    // Waits where it runs: a coroutine must not wait in a context that outlives its own.
    auto body = [s](lock_guard& lock) -> awaitable<void> {
        asio::steady_timer timer(co_await asio::this_coro::executor, 1ms);
        co_await timer.async_wait(asio::use_awaitable);
        s.expect(lock.verify(), "the work has the lock");
    };
    const auto start = [&](auto handler) {
        fslock::async_with_lock(s.locks, s.at("x"), s.quick(), body, std::move(handler));
    };
    s.begin<std::exception_ptr>(start, [s](const std::exception_ptr& e) { s.expect(!e, "the work is done"); });
    co_return;
}

}  // namespace

const std::vector<scenario>& scenarios() {
    static const std::vector<scenario> all{
        {"a free lock", known_directory, acquire_verify_release},
        {"a free lock in a new directory", new_directory, acquire_verify_release},
        {"a free lock in a new directory, and one attempt", new_directory, acquire_in_one_attempt},
        {"a free lock, durably", known_directory, acquire_durably},
        {"a guard in a coroutine", known_directory, hold_in_frame},
        {"a guard without a witness", known_directory, hold_without_witness},
        {"a lock that is lost", known_directory, lose},
        {"a guard released while it is verified", known_directory, release_what_is_verified},
        {"a loss that is waited for", known_directory, wait_for_a_loss},
        {"a loss that is waited for and does not come", known_directory, wait_for_a_loss_that_does_not_come},
        {"work under a lock", known_directory, work_under_the_lock, 2},
        {"turns at one lock", known_directory, take_turns, 3},
        {"turns at one lock in a new directory", new_directory, take_turns, 3},
        {"several locks, one of them common", known_directory, hold_two, 3},
        {"many locks", known_directory, hold_many},
        {"an owner in this context", known_directory, wait_for_myself},
        {"an owner in another context", held_elsewhere, wait_for_release},
        {"an owner in another context, durably", held_elsewhere, wait_durably},
        {"an owner in another context, and three waiters", held_elsewhere, wait_for_release, 3},
        {"an owner in another context, and a limit", held_elsewhere, wait_with_limit},
        {"an owner in another process", held_by_living, wait_for_removal, 1, true, true},
        {"an owner in another process, in a new directory", held_by_living_in_new_directory, wait_for_removal, 1,
         true, true},
        {"a dead owner", held_by_dead, acquire_verify_release},
        {"a dead owner in a new directory", held_by_dead_in_new_directory, acquire_verify_release},
        {"a dead owner, durably", held_by_dead, acquire_durably},
        {"a dead owner, and three heirs", held_by_dead, take_turns, 3},
        {"a dead owner, and one attempt", held_by_dead, acquire_in_one_attempt},
        {"a dead owner without a witness", held_by_dead_process, acquire_verify_release, 1, true, true},
        {"a dead owner and a dead reclaimer", dead_token, acquire_verify_release},
        {"a dead owner and a living reclaimer", living_token, ask_in_vain_behind_a_token, 1, true, true},
        {"a damaged record", damaged, wait_out_the_grace},
        {"limits that pass", held_elsewhere, ask_in_vain},
        {"limits that pass, durably", held_elsewhere, ask_in_vain_durably},
        {"limits that pass in a new directory", held_by_living_in_new_directory, ask_in_vain, 1, true, true},
        {"limits that pass in line", known_directory, ask_in_vain_behind_myself},
        {"a missing directory", known_directory, ask_in_missing_directory},
        {"a user's file", users_file, ask_for_users_file},
        {"a reserved name", known_directory, ask_for_reserved_name},
        {"a guard in a handler that is never called", known_directory, keep_in_uncalled_handler, 1, false},
        {"a guard in a handler that waits for it", known_directory, keep_in_handler_that_waits_for_it, 1, false},
        {"a guard in a handler that waits for another", held_elsewhere, keep_in_handler_that_waits_elsewhere, 1,
         false},
        {"a guard in a listener", known_directory, keep_in_listener},
        {"a guard in static storage", known_directory, keep_outside, 1, false},
    };
    return all;
}

const std::vector<scenario>& endless_scenarios() {
    static const std::vector<scenario> all{
        {"an owner in another context", held_elsewhere, wait_for_ever},
        {"an owner in another context, durably", held_elsewhere, wait_for_ever_durably},
        {"an owner in another context, and three waiters", held_elsewhere, wait_for_ever, 3},
        {"an owner in another process", held_by_living, wait_for_ever, 1, true, true},
        {"an owner in another process, in a new directory", held_by_living_in_new_directory, wait_for_ever, 3, true,
         true},
        {"a dead owner and a living reclaimer", living_token, wait_for_ever, 1, true, true},
        {"a damaged record in its grace", damaged, wait_for_ever},
        {"work under a lock", known_directory, work_for_ever, 2},
        {"work under a lock in a new directory", new_directory, work_for_ever, 2},
    };
    return all;
}

}  // namespace interrupted
