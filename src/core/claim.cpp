#include "claim.hpp"

#include "read_record.hpp"
#include "system_code.hpp"

namespace fslock::core {
namespace {

using os::lock_byte;
using os::lock_state;
using os::witness_kind;

bool is_any_of(std::error_code e, std::initializer_list<int> codes) {
    for (const int code : codes)
        if (is(e, code)) return true;
    return false;
}

bool says_unsupported(std::error_code e) {
    return is_any_of(e, {EOPNOTSUPP, ENOTSUP, EINVAL, EISDIR, ENOSYS, EPERM, EMLINK});
}

publishing next_best(publishing how) {
    return static_cast<publishing>(static_cast<int>(how) + 1);
}

/// The kind that the record will name. Nothing is locked on a shared filesystem.
witness_kind guard_for(os::world& w, const place& where, const options& o) {
    return where.shared() || o.witness == witness::off ? witness_kind::none : w.new_witness();
}

bool must_sync(const place& where, const options& o) {
    return where.shared() || o.durability == durability::full;
}

/// Makes sure that others will see the record whole: what is written on one host reaches the others with the sync at the
/// latest.
task<std::error_code> write(os::world& w, const place& where, const options& o, const prepared& p) {
    const auto text = format<record_text>(p.rec);
    const auto error = co_await w.write(p.file, text);
    if (error || !must_sync(where, o)) co_return error;
    co_return co_await w.sync(p.file);
}

task<std::error_code> fill(os::world& w, const place& where, const options& o, prepared& p, witness_kind guard,
                           std::int64_t floor) {
    p.rec = own_record(w, o, guard, floor);
    // Before anybody can see it: a record of ours that this process does not know is taken for a leftover.
    w.remember_epoch(epoch_stamp(p.rec.writer_epoch));
    return write(w, where, o, p);
}

/// Lock first, so that no record without its witness is ever visible.
task<std::error_code> lock_and_fill(os::world& w, const place& where, const options& o, prepared& p,
                                    std::int64_t floor) {
    auto guard = guard_for(w, where, o);
    if (guard != witness_kind::none) {
        const auto state = co_await w.lock(p.file, lock_byte::witness, guard);
        if (state == lock_state::held) co_return system_code(EBUSY);
        if (state == lock_state::unknown) guard = witness_kind::none;
    }
    co_return co_await fill(w, where, o, p, guard, floor);
}

task<std::error_code> create_private(os::world& w, const place& where, const options& o, prepared& p) {
    if (p.how == publishing::unnamed) {
        auto made = co_await w.create_unnamed(where.where->path, o.mode, where.kind());
        if (made) {
            p.file = std::move(made->file);
            p.facts = made->facts;
            co_return std::error_code{};
        }
        if (!says_unsupported(made.error())) co_return made.error();
        p.how = publishing::linked;
    }
    p.temp = where.private_path(w);
    auto made = co_await w.create(p.temp, o.mode, where.kind());
    if (!made) {
        p.temp.clear();
        co_return is(made.error(), EEXIST) ? system_code(EBUSY) : made.error();
    }
    p.file = std::move(made->file);
    p.facts = made->facts;
    co_return std::error_code{};
}

/// Step 1.
task<std::error_code> prepare(os::world& w, const place& where, const options& o, prepared& p,
                              std::int64_t floor) {
    auto error = co_await create_private(w, where, o, p);
    if (!error) error = co_await lock_and_fill(w, where, o, p, floor);
    if (error) (void)co_await discard(w, where, p);
    co_return error;
}

/// Dates a prepared record to this attempt. So is its epoch: whoever had the lock while we waited has a smaller one.
task<std::error_code> refresh(os::world& w, const place& where, const options& o, prepared& p, std::int64_t floor) {
    const auto before = epoch_stamp(p.rec.writer_epoch);
    p.rec.created_at_ms = p.rec.heartbeat_at_ms = w.wall_ns() / 1'000'000;
    p.rec.writer_epoch = epoch_of(p.rec.pid, w.next_stamp(floor));
    w.remember_epoch(epoch_stamp(p.rec.writer_epoch));
    const auto error = co_await write(w, where, o, p);
    w.forget_epoch(before);
    co_return error;
}

enum class found : std::uint8_t { ours, others, nothing, unclear };

/// Whether the record at `target` is the one in `p`: a reply may have been lost, or have been a lie.
task<found> look_for_ours(os::world& w, const place& where, const std::string& target, const prepared& p) {
    const auto there = co_await read_record_at(w, target, where.kind());
    if (there.state == reading::unsteady || there.state == reading::failed) co_return found::unclear;
    if (there.state == reading::absent) co_return found::nothing;
    const bool ours = there.what.kind == content::record && same_acquisition(there.what.value, p.rec);
    co_return ours ? found::ours : found::others;
}

/// sshfs says EPERM for most of what a server refuses: also when the name is taken, unless its cache knew that.
task<std::error_code> taken_or(std::error_code said, os::world& w, const place& where, const std::string& target) {
    if (!where.shared() || !is(said, EPERM)) co_return said;
    const auto there = co_await w.facts_at(target);
    co_return there ? system_code(EEXIST) : said;
}

/// Since that time somebody may have judged what is visible: no limit is below three intervals.
bool is_long_ago(os::world& w, const prepared& p) {
    return p.in_doubt && w.now() - p.in_doubt->since > 3 * interval_of(p.rec);
}

/// What an attempt on a shared filesystem really came to, whatever was said of it. The times are set anew, so that a
/// record which was long in coming is not old when it appears; and before the look: who judged it dead meanwhile and has
/// not moved it aside by then finds that it was not what he judged. EAGAIN: made, and gone again.
task<std::error_code> settle_claim(os::world& w, const place& where, const std::string& target, prepared& p,
                                   std::error_code said, steady began) {
    said = co_await taken_or(said, w, where, target);
    const bool doubted_before = p.in_doubt.has_value();
    // It may have happened at once, and the answer have taken its time.
    if (!p.in_doubt) p.in_doubt.emplace(prepared::doubt{target, began});
    (void)co_await w.touch(p.file);
    const auto there = co_await look_for_ours(w, where, target, p);
    if (there == found::ours) co_return std::error_code();
    const bool was_free_again = there == found::nothing && !doubted_before;
    if (is(said, EEXIST) && (there == found::others || was_free_again)) p.in_doubt.reset();
    if (!said && there == found::nothing) co_return system_code(EAGAIN);
    const bool to_look_again = !said || (there == found::unclear && is(said, EIO));
    co_return to_look_again ? system_code(EEXIST) : said;
}

task<std::error_code> link_or_rename(os::world& w, const std::string& target, const prepared& p) {
    if (p.how == publishing::renamed) co_return co_await w.rename_exclusive(p.temp, target);
    co_return co_await w.link(p.file, p.temp, target);
}

/// Step 2, of a file that is ready.
task<std::error_code> publish(os::world& w, const place& where, const std::string& target, prepared& p) {
    const auto began = w.now();
    auto error = co_await link_or_rename(w, target, p);
    if (where.shared()) {
        error = co_await settle_claim(w, where, target, p, error, began);
        if (is_any_of(error, {EPERM, EIO, EAGAIN})) {
            // What was in the way may just have gone, or our link was moved aside by mistake: once more, before links
            // are given up here for good, or the wait is.
            error = co_await link_or_rename(w, target, p);
            error = co_await settle_claim(w, where, target, p, error, began);
        }
        if (is(error, EAGAIN)) error = system_code(EEXIST);
    }
    co_return error;
}

/// It is ours, and has the lock's name.
task<std::error_code> is_published(os::world& w, const place& where, prepared& p) {
    if (p.how != publishing::renamed) {
        where.where->links_work.store(true, std::memory_order_relaxed);
        if (!p.temp.empty()) (void)co_await w.unlink(p.temp);
    }
    p.temp.clear();
    p.was_silent = is_long_ago(w, p);
    p.in_doubt.reset();
    co_return std::error_code();
}

/// Takes the file of `p` off `target` again. Who breaks a lock needs its byte 1 as well: while that is ours, what is seen
/// at the name stays there, and while it is somebody else's, he removes it.
task<std::error_code> withdraw(os::world& w, const place& where, const std::string& target, prepared& p) {
    auto removal = lock_state::free;
    if (p.rec.guard == witness_kind::ofd) removal = co_await w.lock(p.file, lock_byte::removal, p.rec.guard);
    if (removal != lock_state::held) {
        const auto now = co_await w.facts_at(target);
        const bool there = now && now->same_inode(p.facts);
        std::error_code left = now.error();
        if (there) left = co_await w.unlink(target);
        // Without a witness it would look alive.
        if (left && p.rec.guard == witness_kind::none) p.in_doubt.emplace(prepared::doubt{target, w.now()});
    }
    co_return co_await discard(w, where, p);
}

/// Of a record that may be visible, or come back to be so. Removed if it is there and nobody can have judged it yet;
/// else it is made a damaged record: what has a living owner on this host blocks for as long as that lives.
task<std::error_code> disown(os::world& w, const place& where, prepared& p) {
    const auto there = co_await look_for_ours(w, where, p.in_doubt->at, p);
    if (there == found::ours && !is_long_ago(w, p)) {
        const auto error = co_await w.unlink(p.in_doubt->at);
        if (!error) co_return error;
    }
    const auto error = co_await w.write(p.file, std::string(format<record_text>(p.rec).size(), '\0'));
    if (error) co_return error;
    co_return co_await w.sync(p.file);
}

/// Both bytes of a file that is visible already. Held: somebody thinks the empty file dead. Unknown: there is no
/// witness to be had.
task<lock_state> lock_created(os::world& w, const place& where, const prepared& p) {
    if (where.shared()) co_return lock_state::unknown;
    const auto kind = w.system_witness();
    const auto removal = co_await w.lock(p.file, lock_byte::removal, kind);
    if (removal == lock_state::held) co_return lock_state::held;
    co_return co_await w.lock(p.file, lock_byte::witness, kind);
}

task<std::error_code> unlock_created(os::world& w, const place& where, const prepared& p) {
    std::error_code error;
    if (where.shared()) co_return error;
    const auto kind = w.system_witness();
    if (p.rec.guard == witness_kind::none) error = co_await w.unlock(p.file, lock_byte::witness, kind);
    // One lock for both bytes, where locks have no bytes: then the witness keeps it.
    if (kind == witness_kind::ofd) error = co_await w.unlock(p.file, lock_byte::removal, kind);
    co_return error;
}

/// The last resort: create at the final name, then lock and fill. Until it is filled, the file is a damaged record
/// to others, who leave it alone while its bytes are locked.
task<std::error_code> create_at(os::world& w, const place& where, const std::string& target, const options& o,
                                prepared& p, std::int64_t floor) {
    auto made = co_await w.create(target, o.mode, where.kind());
    if (!made) co_return co_await taken_or(made.error(), w, where, target);
    p.file = std::move(made->file);
    p.facts = made->facts;
    const auto locked = co_await lock_created(w, where, p);
    if (locked == lock_state::held) {
        p.file.close();
        co_return system_code(EEXIST);
    }
    const auto guard = locked == lock_state::free ? guard_for(w, where, o) : witness_kind::none;
    const auto error = co_await fill(w, where, o, p, guard, floor);
    if (error) {
        (void)co_await withdraw(w, where, target, p);
        co_return error;
    }
    const auto now = co_await w.facts_at(target);
    const bool ours = now && now->same_inode(p.facts);
    if (!ours) {
        if (!now && guard == witness_kind::none) p.in_doubt.emplace(prepared::doubt{target, w.now()});
        (void)co_await discard(w, where, p);
        co_return system_code(EEXIST);
    }
    const auto left_locked = co_await unlock_created(w, where, p);
    if (left_locked) (void)co_await withdraw(w, where, target, p);
    co_return left_locked;
}

/// Steps 1 and 2 by the method `p.how`.
task<std::error_code> attempt(os::world& w, const place& where, const std::string& target, const options& o,
                              prepared& p, std::int64_t floor) {
    if (p.how == publishing::created) co_return co_await create_at(w, where, target, o, p, floor);
    std::error_code error;
    auto before = found::nothing;
    if (p.in_doubt) before = co_await look_for_ours(w, where, target, p);
    if (before == found::unclear) co_return system_code(EEXIST);
    if (before == found::others) p.in_doubt.reset();
    if (p.ready()) {
        error = co_await refresh(w, where, o, p, floor);
    } else {
        error = co_await prepare(w, where, o, p, floor);
    }
    if (!error && before == found::ours) {
        // Once more, now that it is not what somebody may have judged any more.
        before = co_await look_for_ours(w, where, target, p);
        if (before == found::unclear) co_return system_code(EEXIST);
    }
    if (!error && before != found::ours) error = co_await publish(w, where, target, p);
    if (!error) error = co_await is_published(w, where, p);
    co_return error;
}

}  // namespace

record own_record(os::world& w, const options& o, os::witness_kind guard, std::int64_t floor) {
    const auto& self = w.self();
    record r;
    r.pid = self.pid;
    r.hostname = self.hostname;
    r.process_start_time = self.start_time;
    r.boot_id = self.boot_id;
    r.pid_ns = self.pid_ns;
    r.created_at_ms = r.heartbeat_at_ms = w.wall_ns() / 1'000'000;
    r.writer_epoch = epoch_of(self.pid, w.next_stamp(floor));
    r.guard = guard;
    r.heartbeat_ms = o.heartbeat_interval.count();
    r.label = o.label;
    return r;
}

task<std::error_code> claim(os::world& w, const place& where, const std::string& target, const options& o,
                            prepared& p, std::int64_t floor) {
    const bool durable = o.durability == durability::full;
    if (!p.ready()) p.how = where.where->method.load(std::memory_order_relaxed);
    if (durable && p.how == publishing::unnamed) p.how = publishing::linked;
    const auto best = p.how;
    std::error_code error;
    for (int prepared_anew = 0;;) {
        error = co_await attempt(w, where, target, o, p, floor);
        if (!error || is(error, EEXIST)) break;
        if (p.how != publishing::created && says_unsupported(error)) {
            (void)co_await discard(w, where, p);
            p.how = next_best(p.how);
        } else if (prepared_anew < (p.how == publishing::unnamed ? 2 : 1) && is_any_of(error, {ENOENT, EXDEV, EBUSY})) {
            // The file has lost its name, or had and lost one; /proc is not there; or the directory is gone: the next
            // attempt tells.
            (void)co_await discard(w, where, p);
            if (++prepared_anew == 2) p.how = publishing::linked;
        } else {
            (void)co_await discard(w, where, p);
            co_return error;
        }
    }
    if (error) co_return error;
    if (p.how != best) where.where->method.store(p.how, std::memory_order_relaxed);
    if (durable) error = co_await w.sync_directory(where.where->path);
    if (error) {
        (void)co_await withdraw(w, where, target, p);
        co_return error;
    }
    if (p.rec.guard == witness_kind::none) p.file.close();
    co_return error;
}

task<std::error_code> discard(os::world& w, const place& where, prepared& p) {
    std::error_code error;
    if (p.in_doubt) error = co_await disown(w, where, p);
    p.in_doubt.reset();
    if (!p.temp.empty()) {
        error = co_await w.unlink(p.temp);
        p.temp.clear();
    }
    if (!p.rec.writer_epoch.empty()) w.forget_epoch(epoch_stamp(p.rec.writer_epoch));
    p.rec.writer_epoch.clear();
    p.file.close();
    co_return error;
}

}  // namespace fslock::core
