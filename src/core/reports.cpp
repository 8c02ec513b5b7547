#include "reports.hpp"

#include <algorithm>

namespace fslock::core {
namespace {

constexpr milliseconds reclaim_blocked_every{60'000};

std::chrono::system_clock::time_point wall_time(std::int64_t ms) {
    constexpr std::int64_t last = std::chrono::duration_cast<milliseconds>(
        std::chrono::system_clock::duration::max()).count();
    return std::chrono::system_clock::time_point{milliseconds{std::clamp<std::int64_t>(ms, 0, last)}};
}

event event_about(const contender& c, event_kind kind, const record& r) {
    event e;
    e.kind = kind;
    e.path = c.where.lock.full;
    e.owner = describe(r, c.world.self());
    return e;
}

}  // namespace

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

milliseconds lateness(const contender& c, const record& r) {
    return std::max(c.opts.stale_after, 3 * interval_of(r));
}

void report_alive(contender& c, told& s, const finding& f) {
    const auto& r = f.evidence.rec;
    if (!s.waiting) {
        s.waiting = true;
        auto e = event_about(c, event_kind::waiting, r);
        e.proof = f.judged.proof;
        e.age = f.judged.silence;
        c.reporter.report(std::move(e));
    }
    if (f.judged.what != fate::alive) return;
    const milliseconds now{c.world.wall_ns() / 1'000'000};
    const milliseconds quiet = now - milliseconds{r.heartbeat_at_ms};
    if (!s.stale && quiet > lateness(c, r)) {
        s.stale = true;
        auto e = event_about(c, event_kind::stale_but_alive, r);
        e.proof = f.judged.proof;
        e.age = quiet;
        c.reporter.report(std::move(e));
    }
    const milliseconds held = now - milliseconds{r.created_at_ms};
    if (!s.held_long && held > c.opts.warn_after) {
        s.held_long = true;
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

void report_polling(contender& c, told& s, const record& r, std::error_code error) {
    if (std::exchange(s.polling, true)) return;
    auto e = event_about(c, event_kind::polling, r);
    e.error = error;
    c.reporter.report(std::move(e));
}

}  // namespace fslock::core
