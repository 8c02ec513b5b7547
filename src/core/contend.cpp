#include "contend.hpp"

#include <algorithm>

#include "examine.hpp"
#include "fslock/error.hpp"
#include "reclaim.hpp"
#include "system_code.hpp"

namespace fslock::core {
namespace {

using std::chrono::microseconds;

constexpr milliseconds first_blocked_backoff{250};
constexpr milliseconds longest_blocked_backoff{5'000};
constexpr microseconds first_busy_backoff{50};
constexpr int hand_over_looks = 10;
constexpr milliseconds reclaim_blocked_every{60'000};
constexpr milliseconds safety_net{5'000};  // at least, between two looks of those who are told

std::chrono::system_clock::time_point wall_time(std::int64_t ms) {
    constexpr std::int64_t last = std::chrono::duration_cast<milliseconds>(
        std::chrono::system_clock::duration::max()).count();
    return std::chrono::system_clock::time_point{milliseconds{std::clamp<std::int64_t>(ms, 0, last)}};
}

/// One wait from its first look to its end.
struct wait_state {
    bool said_waiting = false;
    bool said_stale = false;
    bool said_held_long = false;
    unsigned blocked = 0;
    bool said_polling = false;
    microseconds busy_backoff = first_busy_backoff;
    /// Something happened to the record, and its owner seems to live: the delay before the next look.
    std::optional<microseconds> stir_backoff;
    int absences = 0;          ///< in a row
    bool retry_once = false;   ///< one attempt past the deadline is owed
    std::int64_t floor = 0;    ///< our epoch must be greater than those of the owners before us
};

event event_about(const contender& c, event_kind kind, const record& r) {
    event e;
    e.kind = kind;
    e.path = c.where.lock.full;
    e.owner = describe(r, c.world.self());
    return e;
}

/// From when on an owner who lives is late.
milliseconds lateness(const contender& c, const record& r) {
    return std::max(c.opts.stale_after, 3 * interval_of(r));
}

void report_alive(contender& c, wait_state& s, const finding& f) {
    const auto& r = f.evidence.rec;
    if (!s.said_waiting) {
        s.said_waiting = true;
        auto e = event_about(c, event_kind::waiting, r);
        e.proof = f.judged.proof;
        e.age = f.judged.silence;
        c.reporter.report(std::move(e));
    }
    if (f.judged.what != fate::alive) return;
    const milliseconds now{c.world.wall_ns() / 1'000'000};
    const milliseconds quiet = now - milliseconds{r.heartbeat_at_ms};
    if (!s.said_stale && quiet > lateness(c, r)) {
        s.said_stale = true;
        auto e = event_about(c, event_kind::stale_but_alive, r);
        e.proof = f.judged.proof;
        e.age = quiet;
        c.reporter.report(std::move(e));
    }
    const milliseconds held = now - milliseconds{r.created_at_ms};
    if (!s.said_held_long && held > c.opts.warn_after) {
        s.said_held_long = true;
        auto e = event_about(c, event_kind::held_long, r);
        e.age = held;
        c.reporter.report(std::move(e));
    }
}

void report_blocked(contender& c, const record& token_holder) {
    const auto now = c.world.now();
    auto& seen = c.seen;
    if (seen.blocked_reported && now - *seen.blocked_reported < reclaim_blocked_every) {
        ++seen.blocked_suppressed;
        return;
    }
    auto e = event_about(c, event_kind::reclaim_blocked, token_holder);
    e.count = std::exchange(seen.blocked_suppressed, 0);
    seen.blocked_reported = now;
    c.reporter.report(std::move(e));
}

void report_reclaimed(contender& c, const finding& f) {
    auto e = event_about(c, event_kind::reclaimed, f.evidence.rec);
    e.proof = f.judged.proof;
    e.age = f.judged.silence;
    c.reporter.report(std::move(e));
}

contend_outcome ended(ending how, std::error_code error = {}) {
    contend_outcome out;
    out.how = how;
    out.error = error;
    return out;
}

/// Spread by a fifth to both sides so that contenders do not march in step.
steady::duration jittered(contender& c, microseconds pause) {
    return pause * 4 / 5 + pause * 2 / 5 * (c.world.random() % 1024) / 1024;
}

steady::duration next_poll(contender& c) { return jittered(c, c.opts.poll_interval); }

bool past_deadline(const contender& c) { return c.deadline && c.world.now() >= *c.deadline; }

/// Until `then`, or the deadline. Says whether to go on.
task<bool> pause(contender& c, steady then) {
    if (past_deadline(c)) co_return true;  // the loop ends it; never sleep behind a deadline
    if (c.deadline) then = std::min(then, *c.deadline);
    const auto woken = co_await c.sleeper.sleep(then);
    co_return woken != wake::cancelled;
}

void report_polling(contender& c, wait_state& s, const record& r, std::error_code error) {
    if (std::exchange(s.said_polling, true)) return;
    auto e = event_about(c, event_kind::polling, r);
    e.error = error;
    c.reporter.report(std::move(e));
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
    if (record.error()) report_polling(c, s, f.evidence.rec, record.error());
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
    const auto pause = *s.stir_backoff;
    s.stir_backoff = 2 * pause;
    if (f.judged.proof == proof::witness_held && pause < c.opts.poll_interval) return pause;
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
    if (!s.said_stale && std::chrono::nanoseconds(wall_ns - now->modified_ns) > lateness(c, was.rec)) co_return false;
    if (!s.said_held_long && milliseconds(wall_ns / 1'000'000 - was.rec.created_at_ms) > c.opts.warn_after)
        co_return false;
    co_return co_await c.world.probe(*file, os::lock_byte::witness, was.rec.guard) == os::lock_state::held;
}

/// For an owner who lives, or may live: until something happens to the record, or the next poll.
task<bool> wait_for_owner(contender& c, wait_state& s, finding& f) {
    if (past_deadline(c)) co_return true;
    const auto told = watch_owner(c, s, f);
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

/// Somebody is at this very record at this moment: very soon again.
task<bool> look_again_soon(contender& c, wait_state& s) {
    const auto delay = s.busy_backoff;
    s.busy_backoff = std::min(2 * s.busy_backoff, std::chrono::duration_cast<microseconds>(c.opts.poll_interval));
    co_return co_await pause(c, c.world.now() + delay);
}

struct turn {
    bool go_on = true;
    std::error_code error;  ///< final
};

/// The owner is dead.
task<turn> take_over(contender& c, wait_state& s, const finding& f) {
    turn t;
    const auto out = co_await reclaim(c, f);
    switch (out.state) {
        case reclaiming::clear:
        case reclaiming::removed:
            s.retry_once = true;
            s.blocked = 0;
            report_reclaimed(c, f);
            break;
        case reclaiming::changed:
        case reclaiming::busy: t.go_on = co_await look_again_soon(c, s); break;
        case reclaiming::blocked: {
            report_blocked(c, out.token_holder);
            const auto delay = blocked_backoff(s.blocked++, c.opts.poll_interval);
            t.go_on = co_await pause(c, c.world.now() + delay);
            break;
        }
        case reclaiming::cancelled: t.go_on = false; break;
        case reclaiming::failed: t.error = out.error; break;
    }
    co_return t;
}

/// The name is taken, but a look finds nothing: released meanwhile, or a cache that lies.
task<turn> meet_absence(contender& c, wait_state& s) {
    turn t;
    s.retry_once = s.absences == 0;
    if (++s.absences > 2) t.go_on = co_await pause(c, c.world.now() + next_poll(c));
    co_return t;
}

task<turn> act_on(contender& c, wait_state& s, finding& f) {
    turn t;
    if (f.state == reading::absent) co_return co_await meet_absence(c, s);
    s.absences = 0;
    if (f.state == reading::failed) {
        t.error = f.error;
        co_return t;
    }
    if (f.state == reading::unsteady) {
        t.go_on = co_await pause(c, c.world.now() + next_poll(c));
        co_return t;
    }
    if (f.judged.what != fate::dead && f.judged.what != fate::being_reclaimed) s.busy_backoff = first_busy_backoff;
    switch (f.judged.what) {
        case fate::alive:
        case fate::unknown:
            if (!past_deadline(c)) report_alive(c, s, f);
            t.go_on = co_await wait_for_owner(c, s, f);
            break;
        case fate::being_reclaimed: t.go_on = co_await look_again_soon(c, s); break;
        case fate::dead: co_return co_await take_over(c, s, f);
        case fate::not_a_lock: t.error = errc::not_a_lock_file; break;
    }
    co_return t;
}

/// Our process had the lock a moment ago, and others were waiting: until one of them has it, or they had their time.
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

task<contend_outcome> contend_until(contender& c, bool claimed) {
    wait_state s;
    const bool begin = co_await leave_it_to_others(c);
    if (!begin) co_return ended(ending::cancelled);
    for (;; claimed = false) {
        if (!claimed) {
            const auto error = co_await claim(c.world, c.where, c.where.path(), c.opts, c.mine, s.floor);
            if (!error) co_return ended(ending::owned);
            if (!is(error, EEXIST)) co_return ended(ending::failed, error);
        }
        const bool expired = past_deadline(c);
        c.looked_at =
            co_await examine(c.world, c.where, c.where.path(), subject::lock, c.opts, c.seen.lock, c.mine);
        s.floor = std::max(s.floor, epoch_stamp(c.looked_at.evidence.rec.writer_epoch));
        const auto t = co_await act_on(c, s, c.looked_at);
        if (t.error) co_return ended(ending::failed, t.error);
        if (!t.go_on) co_return ended(ending::cancelled);
        if (expired && !std::exchange(s.retry_once, false)) co_return ended(ending::timed_out);
    }
}

}  // namespace

milliseconds blocked_backoff(unsigned blocked_before, milliseconds poll_interval) noexcept {
    const auto base = std::max(poll_interval, first_blocked_backoff);
    return std::min(base * (std::int64_t{1} << std::min(blocked_before, 20U)), longest_blocked_backoff);
}

owner_info describe(const record& r, const os::identity& self) {
    owner_info o;
    o.pid = r.pid;
    o.hostname = r.hostname.view();
    o.writer_epoch = r.writer_epoch;
    o.label = r.label;
    o.acquired = wall_time(r.created_at_ms);
    o.last_heartbeat = wall_time(r.heartbeat_at_ms);
    o.this_process = r.pid == self.pid && r.hostname == self.hostname &&
                     r.process_start_time == self.start_time && r.boot_id == self.boot_id;
    return o;
}

task<contend_outcome> contend(contender& c, bool claimed) {
    const auto out = co_await contend_until(c, claimed);
    if (out.how != ending::owned) (void)co_await discard(c.world, c.where, c.mine);
    co_return out;
}

}  // namespace fslock::core
