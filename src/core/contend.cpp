#include "contend.hpp"

#include <algorithm>

#include "examine.hpp"
#include "fslock/error.hpp"
#include "reclaim.hpp"
#include "system_code.hpp"
#include "waiting.hpp"

namespace fslock::core {
namespace {

constexpr milliseconds first_blocked_backoff{250};
constexpr milliseconds longest_blocked_backoff{5'000};

contend_outcome ended(ending how, std::error_code error = {}) {
    contend_outcome out;
    out.how = how;
    out.error = error;
    return out;
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
            if (!past_deadline(c)) report_alive(c, s.said, f);
            t.go_on = co_await wait_for_turn(c, s, f);
            break;
        case fate::being_reclaimed: t.go_on = co_await look_again_soon(c, s); break;
        case fate::dead: co_return co_await take_over(c, s, f);
        case fate::not_a_lock: t.error = errc::not_a_lock_file; break;
    }
    co_return t;
}

task<contend_outcome> contend_until(contender& c, bool claimed) {
    wait_state s;
    const bool begin = co_await leave_it_to_others(c);
    if (!begin) co_return ended(ending::cancelled);
    for (;; claimed = false) {
        if (!claimed) {
            const auto error = co_await claim(c.world, c.where, c.where.path(), c.opts, c.mine, s.floor);
            if (!error) {
                note_crowd(c, s);
                co_return ended(ending::owned);
            }
            if (!is(error, EEXIST)) co_return ended(ending::failed, error);
        }
        const bool expired = past_deadline(c);
        c.looked_at =
            co_await examine(c.world, c.where, c.where.path(), subject::lock, c.opts, c.seen.lock, c.mine);
        const auto epoch = epoch_stamp(c.looked_at.evidence.rec.writer_epoch);
        if (epoch > s.floor) {
            s.floor = epoch;
            s.owners_seen += s.watched_since ? 1 : 0;
            c.seen.crowd.saw(c.looked_at.evidence.rec, c.world.now());
        }
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

task<contend_outcome> contend(contender& c, bool claimed) {
    const auto out = co_await contend_until(c, claimed);
    if (out.how != ending::owned) (void)co_await discard(c.world, c.where, c.mine);
    co_return out;
}

}  // namespace fslock::core
