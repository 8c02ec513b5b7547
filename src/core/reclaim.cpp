#include "reclaim.hpp"

#include <cerrno>

#include "fslock/error.hpp"

namespace fslock::core {
namespace {

using os::lock_byte;
using os::lock_state;
using os::witness_kind;

constexpr milliseconds bypass_token_after{10'000};

bool is(std::error_code e, int code) { return e == std::error_code(code, std::system_category()); }

reclaim_outcome ended(reclaiming state) {
    reclaim_outcome out;
    out.state = state;
    return out;
}

reclaim_outcome failure(std::error_code error) {
    auto out = ended(reclaiming::failed);
    out.error = error;
    return out;
}

/// "It is not there any more" is a change, a passing fault is a reason to look again; all else is final.
reclaim_outcome could_not(std::error_code error) {
    if (is(error, ENOENT) || is(error, ESTALE) || is(error, EIO)) return ended(reclaiming::changed);
    return failure(error);
}

witness_kind kind_for_removal(contender& c, const finding& f) {
    if (f.evidence.kind == content::record && f.evidence.rec.guard != witness_kind::none)
        return f.evidence.rec.guard;
    return c.world.system_witness();
}

/// The removal lock of a judged file. Without it (another user's file), the token alone has to do.
struct removal_lock {
    os::file file;
    witness_kind kind = witness_kind::none;
    bool ours = false;

    [[nodiscard]] const os::file* held() const noexcept { return ours ? &file : nullptr; }
};

/// Step 1: while we have this lock, no other reclaimer is between its check and its removal.
task<reclaim_outcome> take_removal(contender& c, const std::string& path, const finding& dead,
                                   removal_lock& lock) {
    auto opened = co_await c.world.open(path, os::access::read_write, c.where.kind());
    if (!opened) {
        const auto error = opened.error();
        if (is(error, EACCES) || is(error, EPERM) || is(error, EROFS)) co_return ended(reclaiming::clear);
        co_return could_not(error);
    }
    lock.file = std::move(*opened);
    const auto facts = co_await c.world.facts(lock.file);
    if (!facts || !facts->same_inode(dead.evidence.file)) co_return ended(reclaiming::changed);
    lock.kind = kind_for_removal(c, dead);
    const auto state = co_await c.world.lock(lock.file, lock_byte::removal, lock.kind);
    if (state == lock_state::held) co_return ended(reclaiming::busy);
    lock.ours = state == lock_state::free;
    co_return ended(reclaiming::clear);
}

task<std::error_code> give_back(contender& c, removal_lock& lock) {
    std::error_code error;
    if (lock.ours) error = co_await c.world.unlock(lock.file, lock_byte::removal, lock.kind);
    lock.ours = false;
    lock.file.close();
    co_return error;
}

/// A record that has beaten since is not the one that was judged. The kind is not compared: what a user lets us reclaim
/// reads as foreign.
bool same_record(const read_outcome& now, const evidence& judged) {
    return now.state == reading::seen && now.facts.same_inode(judged.file) &&
           now.facts.modified_ns == judged.file.modified_ns && now.what.value.writer_epoch == judged.rec.writer_epoch;
}

/// Whether a file that was moved aside by mistake could be put back without replacing another: by a hard link, or by
/// an exclusive rename. Tried on a file of our own, whose second name goes again.
task<bool> can_put_back(contender& c, const prepared& own) {
    const auto known = c.where.where->method.load(std::memory_order_relaxed);
    if (known == publishing::renamed || c.where.where->links_work) co_return true;
    if (known == publishing::created || !own.ready()) co_return false;
    const auto second = c.where.private_path(c.world);
    auto error = co_await c.world.link(own.file, own.temp, second);
    if (error && !own.temp.empty()) {
        error = co_await c.world.rename_exclusive(own.temp, second);
        if (!error) error = co_await c.world.rename(second, own.temp);
        co_return !error;
    }
    // Also after an error: where the answer was lost, it did happen.
    const auto removed = co_await c.world.unlink(second);
    co_return !error && !removed;
}

task<std::error_code> put_back(contender& c, const os::file& file, const std::string& aside,
                               const std::string& path) {
    auto error = co_await c.world.link(file, aside, path);
    if (error && !is(error, EEXIST)) {
        // It may have happened all the same.
        const auto mine = co_await c.world.facts(file);
        const auto there = co_await c.world.facts_at(path);
        if (mine && there && there->same_inode(*mine)) error = {};
    }
    if (!error || is(error, EEXIST)) co_return co_await c.world.unlink(aside);
    error = co_await c.world.rename_exclusive(aside, path);
    if (is(error, EEXIST)) error = co_await c.world.unlink(aside);
    co_return error;
}

/// Where nothing can be put back: compare, and remove on its heels.
task<reclaim_outcome> compare_and_remove(contender& c, const std::string& path, const evidence& judged) {
    const auto now = co_await read_record_at(c.world, path, c.where.kind());
    if (!same_record(now, judged)) co_return ended(reclaiming::changed);
    const auto error = co_await c.world.unlink(path);
    if (error) co_return could_not(error);
    co_return ended(reclaiming::removed);
}

/// Removes what is at `path` by moving it aside first, so that what is removed is what was compared. A wrong file is
/// put back, unless somebody has the name by then. `own` is a file of ours in the same directory.
task<reclaim_outcome> move_aside(contender& c, const std::string& path, const evidence& judged,
                                 const prepared& own) {
    const bool reversible = co_await can_put_back(c, own);
    if (!reversible) co_return co_await compare_and_remove(c, path, judged);
    const auto aside = c.where.private_path(c.world);
    auto error = co_await c.world.rename(path, aside);
    if (error) co_return could_not(error);
    const auto moved = co_await read_record_at(c.world, aside, c.where.kind());
    if (!same_record(moved, judged)) {
        error = co_await put_back(c, moved.file, aside, path);
        if (error) co_return failure(error);
        co_return ended(reclaiming::changed);
    }
    error = co_await c.world.unlink(aside);
    if (error && !is(error, ENOENT)) co_return failure(error);
    co_return ended(reclaiming::removed);
}

task<bool> token_is_ours(contender& c, const std::string& path, const token& t) {
    if (t.held.rec.guard != witness_kind::none) {
        const auto now = co_await c.world.facts_at(path);
        co_return now && now->same_inode(t.held.facts);
    }
    const auto now = co_await read_record_at(c.world, path, c.where.kind());
    co_return now.state == reading::seen && now.what.value.writer_epoch == t.held.rec.writer_epoch;
}

/// A guarded token tells others that its holder has the removal lock as well: they may pass it by when it stands
/// still (`may_bypass`). Without that lock the token is all there is, and carries no witness.
options token_options(const options& o, bool removal_is_ours) {
    options t;
    t.heartbeat_interval = o.heartbeat_interval;
    t.witness = removal_is_ours ? o.witness : witness::off;
    t.mode = o.mode;
    return t;
}

task<reclaim_outcome> claim_token(contender& c, const std::string& path, token& t, bool removal_is_ours) {
    const auto o = token_options(c.opts, removal_is_ours);
    const auto error = co_await claim(c.world, c.where, path, o, t.held, 0);
    t.ours = !error;
    if (is(error, EEXIST)) co_return ended(reclaiming::blocked);
    if (error) co_return failure(error);
    co_return ended(reclaiming::clear);
}

/// A dead reclaimer's token goes the same way as a dead owner's record, but for a token of its own.
task<reclaim_outcome> remove_dead_token(contender& c, const std::string& path, const finding& dead,
                                        const token& own) {
    removal_lock lock;
    if (!c.where.shared()) {
        auto taken = co_await take_removal(c, path, dead, lock);
        if (taken.state == reclaiming::busy) taken.state = reclaiming::blocked;
        if (taken.state != reclaiming::clear) {
            (void)co_await give_back(c, lock);
            co_return taken;
        }
    }
    const auto out = co_await move_aside(c, path, dead.evidence, own.held);
    (void)co_await give_back(c, lock);
    co_return out;
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
        auto out = co_await remove_dead_token(c, path, f, t);
        if (out.state == reclaiming::removed) out.state = reclaiming::clear;
        co_return out;
    }
    bypass = may_bypass(c, f, removal_is_ours);
    co_return blocked;
}

/// Step 3, and step 4 on its heels.
task<reclaim_outcome> remove_judged(contender& c, const finding& dead, const removal_lock& lock) {
    const auto& path = c.where.path();
    if (c.where.shared()) {
        const auto again =
            co_await examine(c.world, c.where, path, subject::lock, c.opts, c.seen.lock, c.mine);
        const auto& was = dead.evidence;
        const bool same = again.state == reading::seen && again.judged.what == fate::dead &&
                          again.evidence.file.same_inode(was.file) &&
                          again.evidence.rec.writer_epoch == was.rec.writer_epoch;
        if (!same) co_return ended(reclaiming::changed);
        co_return co_await move_aside(c, path, again.evidence, c.mine);
    }
    // The judged file is open, so its inode number is not used again: same number, same file.
    const auto now = co_await c.world.facts_at(path);
    if (!now) co_return could_not(now.error());
    if (!now->same_inode(dead.evidence.file)) co_return ended(reclaiming::changed);
    const auto again = co_await judge_again(c.world, c.where, dead, c.opts, c.seen.lock, c.mine, lock.held());
    if (again.what != fate::dead) co_return ended(reclaiming::busy);
    const auto error = co_await c.world.unlink(path);
    if (error) co_return could_not(error);
    co_return ended(reclaiming::removed);
}

}  // namespace

milliseconds settle_time(os::fs_class filesystem) noexcept {
    return filesystem == os::fs_class::shared ? milliseconds{1000} : milliseconds{50};
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

task<reclaim_outcome> reclaim(contender& c, const finding& dead) {
    removal_lock lock;
    if (!c.where.shared()) {
        const auto taken = co_await take_removal(c, c.where.path(), dead, lock);
        if (taken.state != reclaiming::clear) {
            (void)co_await give_back(c, lock);
            co_return taken;
        }
    }
    token t;
    auto out = co_await take_token(c, t, lock.ours);
    if (out.state == reclaiming::clear) out = co_await remove_judged(c, dead, lock);
    (void)co_await drop_token(c, t);
    (void)co_await give_back(c, lock);
    co_return out;
}

}  // namespace fslock::core
