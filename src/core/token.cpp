#include "token.hpp"

#include "fslock/error.hpp"
#include "system_code.hpp"

namespace fslock::core {
namespace {

using os::witness_kind;

constexpr milliseconds bypass_token_after{10'000};

task<bool> token_is_ours(contender& c, const std::string& path, const token& t) {
    if (t.held.rec.guard != witness_kind::none) {
        const auto now = co_await c.world.facts_at(path);
        co_return now && now->same_inode(t.held.facts);
    }
    const auto now = co_await read_record_at(c.world, path, c.where.kind());
    co_return now.state == reading::seen && same_acquisition(now.what.value, t.held.rec);
}

/// A guarded token tells others that its holder has the removal lock as well: they may pass it by when it stands
/// still (`may_bypass`). Without that lock the token is all there is, and carries no witness.
options token_options(const options& o, const std::string& label, bool removal_is_ours) {
    options t;
    t.label = label;
    t.heartbeat_interval = o.heartbeat_interval;
    t.witness = removal_is_ours ? o.witness : witness::off;
    t.mode = o.mode;
    return t;
}

task<reclaim_outcome> claim_token(contender& c, const std::string& path, token& t, bool removal_is_ours) {
    const auto o = token_options(c.opts, t.label, removal_is_ours);
    const auto error = co_await claim(c.world, c.where, path, o, t.held, 0);
    t.ours = !error;
    if (is(error, EEXIST)) co_return ended(reclaiming::blocked);
    if (error) co_return failure(error);
    co_return ended(reclaiming::clear);
}

/// A guarded token in the way for long: its holder lives, but stands still. Whoever has the removal lock does not
/// need the token among peers of our kind.
bool may_bypass(contender& c, const finding& f, bool removal_is_ours) {
    const auto now = c.world.now();
    if (!c.seen.token_busy_since || c.seen.busy_token != f.evidence.rec.writer_epoch) {
        c.seen.token_busy_since = now;
        c.seen.busy_token = f.evidence.rec.writer_epoch;
    }
    return removal_is_ours && f.judged.proof == fslock::proof::witness_held &&
           now - *c.seen.token_busy_since > bypass_token_after;
}

/// What to do about a token that somebody else holds: `clear` means that one more claim is worth it.
task<reclaim_outcome> deal_with_token(contender& c, const std::string& path, const token& t, bool removal_is_ours,
                                      bool& bypass) {
    const auto f = co_await examine(c.world, c.where, path, subject::token, c.opts, c.seen.token, t.held);
    auto blocked = ended(reclaiming::blocked);
    blocked.token_holder = f.evidence.rec;
    if (f.state == reading::absent) co_return ended(reclaiming::clear);
    if (f.state == reading::failed) co_return failure(f.error);
    if (f.state == reading::unsteady) co_return blocked;
    if (f.judged.what == fate::not_a_lock) co_return failure(errc::not_a_lock_file);
    if (f.judged.what == fate::dead) {
        auto out = co_await remove_dead_token(c, path, f, t.held);
        if (out.state == reclaiming::removed) out.state = reclaiming::clear;
        co_return out;
    }
    bypass = may_bypass(c, f, removal_is_ours);
    co_return blocked;
}

}  // namespace

milliseconds settle_time(os::fs_class filesystem) noexcept {
    return filesystem == os::fs_class::shared ? milliseconds{1000} : milliseconds{50};
}

task<reclaim_outcome> remove_dead_token(contender& c, const std::string& path, const finding& dead,
                                        const prepared& own) {
    removal_lock lock;
    if (!c.where.shared()) {
        auto taken = co_await take_removal(c, path, dead, lock);
        if (taken.state == reclaiming::busy) taken.state = reclaiming::blocked;
        // With its removal lock, what still has the name cannot lose it: nothing will have to be put back.
        const auto now = co_await c.world.facts_at(path);
        const bool there = now && now->same_inode(dead.evidence.file);
        if (taken.state == reclaiming::clear && !there) taken = ended(reclaiming::changed);
        if (taken.state != reclaiming::clear) {
            (void)co_await give_back(c, lock);
            co_return taken;
        }
    }
    const auto out = co_await move_aside(c, path, dead.evidence, own);
    (void)co_await give_back(c, lock);
    co_return out;
}

task<reclaim_outcome> take_token(contender& c, token& t, bool removal_is_ours) {
    const auto path = c.where.token_path();
    auto out = co_await claim_token(c, path, t, removal_is_ours);
    bool takeover = false;
    if (out.state == reclaiming::blocked) {
        bool bypass = false;
        out = co_await deal_with_token(c, path, t, removal_is_ours, bypass);
        if (bypass) co_return ended(reclaiming::clear);
        if (out.state != reclaiming::clear) {
            if (out.state == reclaiming::changed) out.state = reclaiming::blocked;
            (void)co_await discard(c.world, c.where, t.held);
            co_return out;
        }
        takeover = true;
        out = co_await claim_token(c, path, t, removal_is_ours);
    }
    if (!t.ours) {
        (void)co_await discard(c.world, c.where, t.held);
        co_return out;
    }
    c.seen.token_busy_since.reset();
    if (!takeover && !c.where.shared()) co_return out;
    const auto woken = co_await c.sleeper.sleep(c.world.now() + settle_time(c.where.where->facts.kind));
    if (woken == wake::cancelled) co_return ended(reclaiming::cancelled);
    const bool still = co_await token_is_ours(c, path, t);
    co_return still ? out : ended(reclaiming::blocked);
}

task<std::error_code> drop_token(contender& c, token& t) {
    std::error_code error;
    if (t.ours) {
        const auto path = c.where.token_path();
        bool here = co_await token_is_ours(c, path, t);
        if (!here) {
            // Somebody took it for dead, moved it aside and may be about to put it back.
            (void)co_await c.sleeper.sleep(c.world.now() + settle_time(c.where.where->facts.kind));
            here = co_await token_is_ours(c, path, t);
        }
        if (here) error = co_await c.world.unlink(path);
        t.ours = false;
    }
    (void)co_await discard(c.world, c.where, t.held);
    co_return error;
}

}  // namespace fslock::core
