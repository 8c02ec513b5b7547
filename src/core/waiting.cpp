#include "waiting.hpp"

#include <algorithm>
#include <utility>

#include "system_code.hpp"

namespace fslock::core {
namespace {

using std::chrono::microseconds;

constexpr int hand_over_looks = 10;
constexpr milliseconds safety_net{5'000};  // at least, between two looks of those who are told

/// Spread by a fifth to both sides so that contenders do not march in step.
steady::duration jittered(contender& c, microseconds pause) {
    return pause * 4 / 5 + pause * 2 / 5 * (c.world.random() % 1024) / 1024;
}

bool is_gone(std::error_code e) {
    return e == std::errc::no_such_file_or_directory || e == std::errc::not_a_directory;
}

/// Has the kernel tell of the end of the owner, and of what happens to its record. `still` only where nothing that
/// matters can happen without that.
watching watch_owner(contender& c, wait_state& s, const finding& f) {
    if (c.opts.events == events::off) return watching::never;
    const bool lives = f.judged.what == fate::alive;
    const bool by_process = lives && f.judged.proof == proof::process_alive;
    const bool by_witness = lives && f.judged.proof == proof::witness_held;
    os::result<watching> record = watching::never;
    os::result<watching> process = by_process ? watching::never : watching::still;
    if (!c.where.shared()) record = c.sleeper.watch_record(c.where.path(), f.evidence.file);
    if (is_gone(record.error())) return watching::anew;
    if (record.error()) report_polling(c, s.said, f.evidence.rec, record.error());
    if (by_process) process = c.sleeper.watch_process(f.evidence.rec.pid);
    if (*record == watching::anew || *process == watching::anew) return watching::anew;
    // A process that is known by its pid alone counts as alive for a time only.
    const bool for_good = by_witness || (by_process && f.evidence.rec.process_start_time);
    const bool told = *record == watching::still && *process == watching::still && for_good;
    return told ? watching::still : watching::never;
}

/// The kernel reports the close of a dying owner before it drops the owner's lock: then very soon again.
std::optional<microseconds> after_a_stir(const contender& c, wait_state& s, const finding& f) {
    if (!s.stir_backoff) return {};
    const auto delay = *s.stir_backoff;
    s.stir_backoff = 2 * delay;
    if (f.judged.proof == proof::witness_held && delay < c.opts.poll_interval) return delay;
    s.stir_backoff.reset();
    return {};
}

/// Who waits says so to the owner, as long as there are descriptors to be had. Then not even a prepared record is
/// kept, where that leaves nothing behind.
task<bool> settle_down(contender& c, finding& f) {
    const bool may_keep = c.world.may_keep_waiting_files();
    if (may_keep && f.judged.proof == proof::witness_held) {
        c.world.show_waiting(f.file);
        co_return true;
    }
    f.file.close();
    if (!may_keep) (void)co_await discard(c.world, c.where, c.mine);
    co_return may_keep;
}

/// Whether all is as it was for somebody who would have been told: the name leads to the same file, and its owner lives.
/// False also when there is something to report. Not a look: much cheaper, for those who wait for many locks.
task<bool> nothing_was_missed(contender& c, const wait_state& s, const finding& f) {
    const auto& was = f.evidence;
    os::file opened;
    const os::file* file = &f.file;
    std::optional<os::file_facts> now;
    if (f.file) {
        if (const auto facts = co_await c.world.facts_at(c.where.path())) now = *facts;
    } else {
        auto there = co_await c.world.open(c.where.path(), os::access::read, c.where.kind());
        if (!there) co_return false;
        opened = std::move(*there);
        file = &opened;
        if (const auto facts = co_await c.world.facts(opened)) now = *facts;
    }
    if (!now || !now->same_inode(was.file)) co_return false;
    const auto wall_ns = c.world.wall_ns();
    if (!s.said.stale && std::chrono::nanoseconds(wall_ns - now->modified_ns) > lateness(c, was.rec)) co_return false;
    if (!s.said.held_long && milliseconds(wall_ns / 1'000'000 - was.rec.created_at_ms) > c.opts.warn_after)
        co_return false;
    co_return co_await c.world.probe(*file, os::lock_byte::witness, was.rec.guard) == os::lock_state::held;
}

/// For an owner who lives, or may live: until something happens to the record, or the next poll.
task<bool> wait_for_owner(contender& c, wait_state& s, finding& f) {
    if (past_deadline(c)) co_return true;
    const auto told = watch_owner(c, s, f);
    if (told != watching::never && !s.watched_since) s.watched_since = c.world.now();
    if (told == watching::anew) co_return true;  // what happened before is found by one more look
    const auto soon = after_a_stir(c, s, f);
    (void)co_await settle_down(c, f);
    const bool by_witness = f.judged.proof == proof::witness_held;
    for (;;) {
        const auto net = std::max(safety_net, c.opts.poll_interval);
        steady::duration delay = told == watching::still ? net / 5 + jittered(c, net) : next_poll(c);
        if (soon) delay = *soon;
        auto then = c.world.now() + delay;
        if (c.deadline) then = std::min(then, *c.deadline);
        const auto woken = co_await c.sleeper.wait_for_change(then);
        if (woken == wake::event) s.stir_backoff = first_busy_backoff;
        if (woken != wake::due) co_return woken != wake::cancelled;
        if (soon || told != watching::still || !by_witness || past_deadline(c)) co_return true;
        const bool all_is_as_it_was = co_await nothing_was_missed(c, s, f);
        if (!all_is_as_it_was) co_return true;
    }
}

/// Among many, before it watches: until it is about our turn, the lock is free, or its owner keeps it.
task<bool> stay_away(contender& c, wait_state& s, finding& f, steady until) {
    const auto step = std::chrono::duration_cast<microseconds>(c.seen.crowd.between_looks());
    auto was = f.evidence.file;
    (void)co_await settle_down(c, f);
    while (c.world.now() < until && !past_deadline(c)) {
        const bool go_on = co_await pause(c, std::min(until, c.world.now() + jittered(c, step)));
        if (!go_on) co_return false;
        const auto now = co_await c.world.facts_at(c.where.path());
        s.found_free = !now;
        if (!now || (now->same_inode(was) && now->modified_ns == was.modified_ns)) break;
        was = *now;
    }
    co_return true;
}

}  // namespace

steady::duration next_poll(contender& c) { return jittered(c, c.opts.poll_interval); }

bool past_deadline(const contender& c) { return c.deadline && c.world.now() >= *c.deadline; }

task<bool> pause(contender& c, steady then) {
    if (past_deadline(c)) co_return true;  // the loop ends it; never sleep behind a deadline
    if (c.deadline) then = std::min(then, *c.deadline);
    const auto woken = co_await c.sleeper.sleep(then);
    co_return woken != wake::cancelled;
}

task<bool> wait_for_turn(contender& c, wait_state& s, finding& f) {
    steady::duration rest{};
    if (!c.where.shared() && !std::exchange(s.stayed_away, true)) rest = c.seen.crowd.rest(c.world.now());
    if (rest > steady::duration()) co_return co_await stay_away(c, s, f, c.world.now() + rest);
    co_return co_await wait_for_owner(c, s, f);
}

task<bool> look_again_soon(contender& c, wait_state& s) {
    const auto delay = s.busy_backoff;
    s.busy_backoff = std::min(2 * s.busy_backoff, std::chrono::duration_cast<microseconds>(c.opts.poll_interval));
    co_return co_await pause(c, c.world.now() + delay);
}

task<bool> leave_it_to_others(contender& c) {
    if (!c.seen.yield_until) co_return true;
    const auto until = *std::exchange(c.seen.yield_until, std::nullopt);
    for (int looks = 0; looks < hand_over_looks && c.world.now() < until && !past_deadline(c); ++looks) {
        const auto there = co_await c.world.facts_at(c.where.path());
        if (there) co_return true;
        const auto again = c.world.now() + microseconds(hand_over_pause) / hand_over_looks;
        const bool go_on = co_await pause(c, std::min(until, again));
        if (!go_on) co_return false;
    }
    co_return true;
}

void note_crowd(contender& c, const wait_state& s) {
    if (s.found_free && !s.watched_since) c.seen.crowd.was_too_cautious();
    if (s.watched_since) c.seen.crowd.took(s.owners_seen + 1, c.world.now() - *s.watched_since);
}

}  // namespace fslock::core
