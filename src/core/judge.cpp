#include "judge.hpp"

#include <algorithm>

namespace fslock::core {
namespace {

using os::fs_class;
using os::lock_state;
using process_state = os::process_facts::state;
using fslock::proof;

constexpr milliseconds unrecorded_interval{5'000};
constexpr milliseconds longest_own_wait{15'000};  // settling a token and the longest back-off fit in
constexpr milliseconds longest_interval{std::chrono::hours(1)};
constexpr milliseconds waive_confirm_after{std::chrono::hours(1)};
constexpr milliseconds token_malformed_grace{60'000};
constexpr milliseconds token_dead_after{std::chrono::minutes(10)};

verdict alive(proof p) { return {fate::alive, p, {}, {}}; }
verdict dead(proof p) { return {fate::dead, p, {}, {}}; }
verdict unknown(milliseconds look_again_after) { return {fate::unknown, proof::none, {}, look_again_after}; }

milliseconds since(steady then, steady now) {
    return std::chrono::duration_cast<milliseconds>(std::max(now - then, steady::duration::zero()));
}

milliseconds silence_of(const evidence& e) {
    const auto watched = since(e.seen.silent_since, e.now);
    if (!e.filesystem_now_ns) return watched;
    return std::max(watched, milliseconds{*e.filesystem_now_ns / 1'000'000 - e.file.modified_ns / 1'000'000});
}

/// Dead once the record was silent for `limit`; until then unknown.
verdict by_silence(const evidence& e, milliseconds limit, proof p) {
    const auto silence = silence_of(e);
    return silence > limit ? dead(p) : unknown(limit - silence + milliseconds{1});
}

/// Row 5: silence by the filesystem's clock, confirmed by our own eyes.
verdict by_foreign_silence(const evidence& e, milliseconds pace, const options& limits) {
    const auto silence = silence_of(e);
    const auto limit = std::max(limits.foreign_stale_after, 3 * pace);
    if (silence <= limit) return unknown(limit - silence + milliseconds{1});
    if (silence > waive_confirm_after) return dead(proof::silent);
    const auto confirm = std::max(limits.foreign_confirm, 3 * pace);
    const auto watched = since(e.seen.silent_since, e.now);
    return watched >= confirm ? dead(proof::silent) : unknown(confirm - watched + milliseconds{1});
}

enum class process_verdict { alive, gone, reused, leftover, unknown };

/// REQUIRES: the pid was recorded in our PID namespace, or nobody knows better.
process_verdict process_rule(const evidence& e, const os::identity& self) {
    if (e.process.life == process_state::gone) return process_verdict::gone;
    if (e.process.life == process_state::unknown) return process_verdict::unknown;
    if (!e.rec.process_start_time || !e.process.start_time) return process_verdict::unknown;
    if (*e.rec.process_start_time != *e.process.start_time) return process_verdict::reused;
    return e.rec.pid == self.pid && !e.epoch_is_ours ? process_verdict::leftover : process_verdict::alive;
}

proof proof_of(process_verdict v) {
    switch (v) {
        case process_verdict::alive: return proof::process_alive;
        case process_verdict::gone: return proof::process_gone;
        case process_verdict::reused: return proof::process_reused;
        case process_verdict::leftover: return proof::leftover;
        case process_verdict::unknown: break;
    }
    return proof::none;
}

bool common_pid_namespace(const record& r, const os::identity& self) {
    return !r.boot_id.empty() && r.boot_id == self.boot_id && r.pid_ns && self.pid_ns && *r.pid_ns == *self.pid_ns;
}

bool maybe_same_machine(const record& r, const os::identity& self) {
    if (r.pid_ns) return false;
    if (!r.boot_id.empty() && !self.boot_id.empty()) return r.boot_id == self.boot_id;
    return !r.hostname.empty() && r.hostname == self.nodename;
}

/// Row 3: a peer that does not say in which PID namespace its pid counts.
verdict judge_seed_peer(const evidence& e, const os::identity& self, milliseconds pace, const options& limits) {
    const auto stale = std::max(limits.stale_after, 3 * pace);
    switch (process_rule(e, self)) {
        case process_verdict::alive: return alive(proof::process_alive);
        case process_verdict::leftover: return by_silence(e, stale, proof::leftover);
        case process_verdict::gone: return by_silence(e, stale, proof::process_gone);
        case process_verdict::reused: return by_silence(e, stale, proof::process_reused);
        case process_verdict::unknown: break;
    }
    auto v = by_foreign_silence(e, pace, limits);
    if (v.what == fate::unknown && e.process.life == process_state::exists) {
        v.what = fate::alive;
        v.proof = proof::process_alive;
    }
    return v;
}

/// Rows 2 to 5, without the veto.
verdict judge_record(const evidence& e, const os::identity& self, milliseconds pace, const options& limits) {
    if (common_pid_namespace(e.rec, self)) {
        switch (const auto v = process_rule(e, self)) {
            case process_verdict::alive: return alive(proof::process_alive);
            case process_verdict::gone:
            case process_verdict::reused: return dead(proof_of(v));
            // Not at once: a second copy of this library in the process has a table of its own.
            case process_verdict::leftover:
                return by_silence(e, std::max(limits.stale_after, 3 * pace), proof::leftover);
            case process_verdict::unknown: return by_foreign_silence(e, pace, limits);
        }
    }
    if (maybe_same_machine(e.rec, self)) return judge_seed_peer(e, self, pace, limits);
    const bool other_boot = !e.rec.boot_id.empty() && !self.boot_id.empty() && e.rec.boot_id != self.boot_id;
    if (e.filesystem == fs_class::local && other_boot)
        return by_silence(e, std::max(limits.stale_after, 3 * pace), proof::earlier_boot);
    return by_foreign_silence(e, pace, limits);
}

/// Row 6.
verdict judge_malformed(const evidence& e, const options& limits) {
    const auto grace = e.what == subject::token ? token_malformed_grace : limits.malformed_grace;
    const auto v = by_silence(e, grace, proof::malformed_unchanged);
    const bool guarded = e.filesystem == fs_class::local && e.witness != lock_state::free;
    return guarded && v.what == fate::dead ? unknown(grace) : v;
}

/// A change that we saw with our own eyes is stronger than any reasoning about clocks and pids.
verdict veto(verdict v, const evidence& e, milliseconds pace) {
    if (v.what != fate::dead || !e.seen.last_change) return v;
    const auto quiet = since(*e.seen.last_change, e.now);
    return quiet < 3 * pace ? unknown(3 * pace - quiet + milliseconds{1}) : v;
}

verdict decide(const evidence& e, const os::identity& self, const options& limits) {
    if (e.kind == content::foreign) return {fate::not_a_lock, proof::none, {}, {}};
    if (e.kind == content::record && witness_decides(e)) {
        if (e.witness == lock_state::held) return alive(proof::witness_held);
        if (e.removal == lock_state::held) return {fate::being_reclaimed, proof::witness_free, {}, {}};
        return dead(proof::witness_free);
    }
    const auto pace = interval_of(e.rec);
    auto v = e.kind == content::record ? judge_record(e, self, pace, limits) : judge_malformed(e, limits);
    if (e.what == subject::token && v.what != fate::dead && e.witness != lock_state::held &&
        silence_of(e) > token_dead_after)
        v = dead(proof::silent);
    return veto(v, e, pace);
}

}  // namespace

void observe(observation& o, const record& r, const os::file_facts& file, steady now, const options& limits) {
    const auto gap = std::max({3 * interval_of(r), 3 * limits.poll_interval, longest_own_wait});
    const bool known = o.inode != 0 && o.epoch == r.writer_epoch;
    const bool changed = known && (o.inode != file.inode || o.modified_ns != file.modified_ns ||
                                   o.heartbeat_at_ms != r.heartbeat_at_ms);
    if (!known) o.last_change.reset();
    if (changed) o.last_change = now;
    if (!known || changed || now - o.last_look > gap) o.silent_since = now;
    o.inode = file.inode;
    o.epoch = r.writer_epoch;
    o.modified_ns = file.modified_ns;
    o.heartbeat_at_ms = r.heartbeat_at_ms;
    o.last_look = now;
}

verdict judge(const evidence& e, const os::identity& self, const options& limits) {
    auto v = decide(e, self, limits);
    v.silence = silence_of(e);
    return v;
}

bool witness_decides(const evidence& e) noexcept {
    return e.filesystem == fs_class::local && e.rec.guard != os::witness_kind::none &&
           e.witness != lock_state::unknown;
}

bool needs_process(const record& r, const os::identity& self) noexcept {
    return common_pid_namespace(r, self) || maybe_same_machine(r, self);
}

milliseconds interval_of(const record& r) noexcept {
    if (!r.heartbeat_ms) return unrecorded_interval;
    return milliseconds{std::clamp<std::int64_t>(*r.heartbeat_ms, 1, longest_interval.count())};
}

}  // namespace fslock::core
