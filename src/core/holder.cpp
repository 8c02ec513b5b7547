#include "holder.hpp"

#include "fslock/error.hpp"
#include "read_record.hpp"
#include "reclaim.hpp"
#include "system_code.hpp"
#include "waiting.hpp"

namespace fslock::core {
namespace {

using os::lock_byte;
using os::lock_state;
using os::witness_kind;

standing_outcome is_now(standing s, std::error_code error = {}) {
    standing_outcome out;
    out.now = s;
    out.error = error;
    return out;
}

standing_outcome is_lost(loss why) {
    auto out = is_now(standing::lost);
    out.why = why;
    return out;
}

/// Nothing was found where absence cannot be proved.
bool is_nowhere(const standing_outcome& s) { return s.now == standing::unsure && is(s.error, ENOENT); }

std::error_code again() { return system_code(EAGAIN); }
std::error_code busy() { return system_code(EBUSY); }

bool is_of(const read_outcome& r, const record& own) {
    return r.state == reading::seen && r.what.kind == content::record && same_acquisition(r.what.value, own);
}

}  // namespace

holder::holder(place where, prepared published, steady now)
    : where_(std::move(where)),
      file_(std::move(published.file)),
      facts_(published.facts),
      rec_(std::move(published.rec)),
      last_beat_(now),
      beat_late_(published.was_silent) {}

task<standing_outcome> holder::look(os::world& w) {
    if (!guarded()) co_return co_await look_without_witness(w);
    // Our descriptor keeps the inode number from being used again: same number, same file.
    const auto now = co_await w.facts_at(where_.path());
    if (!now && (is(now.error(), ENOENT) || is(now.error(), ENOTDIR))) co_return co_await absent(w);
    if (!now) co_return is_now(standing::unsure, now.error());
    if (now->same_inode(facts_)) co_return is_now(standing::ours);
    co_return co_await adopt(w);
}

task<standing_outcome> holder::absent(os::world& w) {
    const auto directory = co_await w.directory(where_.where->path);
    const bool there = directory && directory->same_inode(where_.where->facts.file);
    co_return is_lost(there ? loss::removed : loss::directory_gone);
}

/// Another inode at the path: ours only if it has our epoch, and nobody has begun to remove it.
task<standing_outcome> holder::adopt(os::world& w) {
    auto found = co_await read_record_at(w, where_.path(), where_.kind(), os::access::read_write);
    if (found.state == reading::unsteady || found.state == reading::failed)
        co_return is_now(standing::unsure, found.error);
    if (!is_of(found, rec_)) co_return is_lost(loss::replaced);
    const auto guard = rec_.guard;
    const auto witness = co_await w.lock(found.file, lock_byte::witness, guard);
    // A flock may be busy because somebody is asking, and what the system cannot say just now is no loss.
    if (witness == lock_state::unknown || (witness == lock_state::held && guard == witness_kind::flock))
        co_return is_now(standing::unsure, again());
    if (witness == lock_state::held) co_return is_lost(loss::replaced);
    if (guard == witness_kind::ofd) {
        const auto removal = co_await w.lock(found.file, lock_byte::removal, guard);
        if (removal == lock_state::unknown) co_return is_now(standing::unsure, again());
        if (removal == lock_state::held) co_return is_lost(loss::replaced);
    }
    const auto now = co_await w.facts_at(where_.path());
    const bool there = now && now->same_inode(found.facts);
    if (guard == witness_kind::ofd) (void)co_await w.unlock(found.file, lock_byte::removal, guard);
    if (!there) co_return is_now(standing::unsure, again());
    file_ = std::move(found.file);
    facts_ = found.facts;
    co_return is_now(standing::ours);
}

/// Inode numbers prove nothing here; the epoch does. On a shared filesystem one look that finds nothing does not
/// prove absence either (a lagging cache, a rename in flight).
task<standing_outcome> holder::look_without_witness(os::world& w) {
    const auto found = co_await read_record_at(w, where_.path(), where_.kind());
    if (is_of(found, rec_)) {
        absent_since_.reset();
        co_return is_now(standing::ours);
    }
    if (found.state == reading::absent) {
        if (!absent_since_) absent_since_ = w.now();
        const bool proved = !where_.shared() || w.now() - *absent_since_ >= interval_of(rec_);
        if (proved) co_return co_await absent(w);
        co_return is_now(standing::unsure, system_code(ENOENT));
    }
    if (found.state != reading::seen) co_return is_now(standing::unsure, found.error);
    // A damaged record names nobody else: it may be whole again at the next look.
    if (found.what.kind != content::record)
        co_return is_now(standing::unsure, system_code(EBADMSG));
    co_return is_lost(loss::replaced);
}

task<std::error_code> holder::write_beat(os::world& w) {
    const auto began = w.now();
    const auto text = format<record_text>(rec_, w.wall_ns() / 1'000'000);
    std::error_code error;
    if (guarded()) {
        error = co_await w.write(file_, text);
    } else {
        // The descriptor that was compared is the one that is written: it can only be our own inode.
        const auto found = co_await read_record_at(w, where_.path(), where_.kind(), os::access::read_write);
        if (!is_of(found, rec_)) co_return found.error;
        error = co_await w.write(found.file, text);
        if (!error && where_.shared()) error = co_await w.sync(found.file);
    }
    if (error) co_return error;
    // Whoever has judged us dead meanwhile does not see this beat before he removes the record.
    if (began - last_beat_ > 3 * interval_of(rec_)) beat_late_ = true;
    last_beat_ = began;
    co_return error;
}

task<standing_outcome> holder::beat(os::world& w) {
    const auto error = co_await write_beat(w);
    auto out = co_await look(w);
    if (out.now == standing::ours && error) out = is_now(standing::unsure, error);
    co_return out;
}

task<standing_outcome> holder::verify(os::world& w) { return look(w); }

task<std::error_code> holder::remove_record(os::world& w) {
    const auto error = co_await w.unlink(where_.path());
    co_return is(error, ENOENT) ? make_error_code(errc::lost) : error;
}

/// Whether somebody may be removing the record at this moment: without a witness, when the heartbeat is old or came
/// late. With a flock, which leaves no second lock for that, who breaks the lock shows it by its token.
///
/// REQUIRES: there is no byte 1 that would say so.
task<bool> holder::somebody_may_remove(contender& c) {
    if (rec_.guard == witness_kind::flock) {
        const auto token = co_await read_record_at(c.world, where_.token_path(), where_.kind());
        co_return token.what.value.label == breaking_label;
    }
    co_return beat_late_ || c.world.now() - last_beat_ > c.opts.stale_after;
}

/// Looks so that nobody who breaks the lock can come between the look and our removal: they need byte 1 as well. Where
/// the system cannot lock it, they need the token like us.
task<standing_outcome> holder::look_to_remove(os::world& w, bool& under_token) {
    for (int tries = 0; tries < 2; ++tries) {
        const auto locked = facts_.inode;
        const auto state = co_await w.lock(file_, lock_byte::removal, rec_.guard);
        if (state == lock_state::held) co_return is_now(standing::unsure, busy());
        under_token = state == lock_state::unknown;
        const auto there = co_await look(w);
        // The look may have adopted a copy, which has a byte 1 of its own.
        if (there.now != standing::ours || facts_.inode == locked) co_return there;
    }
    co_return is_now(standing::unsure, again());
}

/// Where somebody may be at the removal, only under the token, like every removal of a record that may be judged dead.
task<std::error_code> holder::remove_under_token(contender& c) {
    token t;
    auto taken = co_await take_token(c, t, false);
    // A record with a witness is left behind dead if this fails, and who has the token has it for moments.
    for (int tries = 0; guarded() && taken.state == reclaiming::blocked && tries < 3; ++tries) {
        (void)co_await drop_token(c, t);
        (void)co_await c.sleeper.sleep(c.world.now() + settle_time(where_.kind()));
        taken = co_await take_token(c, t, false);
    }
    std::error_code error = taken.error;
    if (taken.state == reclaiming::clear) {
        const auto still = co_await look(c.world);
        if (still.now == standing::ours) error = co_await remove_record(c.world);
        if (still.now == standing::lost) error = make_error_code(errc::lost);
        if (still.now == standing::unsure) error = still.error;
    } else if (!error) {
        error = busy();
    }
    (void)co_await drop_token(c, t);
    co_return error;
}

/// A record that could not be removed must not look alive, or being removed, because a forked child still has the
/// descriptor.
task<std::error_code> holder::unlock(os::world& w) {
    if (rec_.guard == witness_kind::ofd) (void)co_await w.unlock(file_, lock_byte::removal, rec_.guard);
    co_return co_await w.unlock(file_, lock_byte::witness, rec_.guard);
}

/// A process that takes turn after turn would keep the lock from those whom the kernel has to wake first. Looked for
/// after a turn that took longer than the look, and now and then after a short one.
void holder::look_for_waiters(contender& c) const {
    constexpr unsigned one_in = 8;
    if (rec_.guard != witness_kind::ofd) return;
    const auto now = c.world.now();
    if (now - last_beat_ < hand_over_pause && c.world.random() % one_in != 0) return;
    if (c.world.is_waited_for(file_)) c.seen.yield_until = now + hand_over_pause;
}

void holder::abandon(os::world& w) noexcept {
    w.forget_epoch(epoch_stamp(rec_.writer_epoch));
    beat_late_ = true;
}

task<std::error_code> holder::release(contender& c) {
    const bool byte_1 = rec_.guard == witness_kind::ofd;
    bool under_token = false;
    if (!byte_1) under_token = co_await somebody_may_remove(c);
    standing_outcome there;
    if (byte_1) there = co_await look_to_remove(c.world, under_token);
    if (!byte_1) there = co_await look(c.world);
    if (is_nowhere(there)) {
        // Somebody who judged it dead may have moved it aside, and be about to put it back.
        (void)co_await c.sleeper.sleep(c.world.now() + settle_time(where_.kind()));
        there = co_await look(c.world);
        under_token = true;
    }
    std::error_code error;
    switch (there.now) {
        case standing::ours:
            if (under_token) error = co_await remove_under_token(c);
            if (!under_token) error = co_await remove_record(c.world);
            break;
        case standing::lost: error = make_error_code(errc::lost); break;
        case standing::unsure: error = is_nowhere(there) ? make_error_code(errc::lost) : there.error; break;
    }
    // Without a witness a record that stays looks alive for as long as we live: the caller has to try again.
    if (error && error != errc::lost && !guarded()) co_return error;
    if (error && guarded()) (void)co_await unlock(c.world);
    if (!error) look_for_waiters(c);  // they take longer to wake up than this takes
    abandon(c.world);
    file_.close();
    co_return error;
}

}  // namespace fslock::core
