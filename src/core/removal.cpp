#include "removal.hpp"

#include "system_code.hpp"

namespace fslock::core {
namespace {

using os::lock_byte;
using os::lock_state;
using os::witness_kind;

witness_kind kind_for_removal(contender& c, const finding& f) {
    if (f.evidence.kind == content::record && f.evidence.rec.guard != witness_kind::none)
        return f.evidence.rec.guard;
    return c.world.system_witness();
}

/// A record that has beaten since is not the one that was judged. The kind is not compared: what a user lets us reclaim
/// reads as foreign.
bool same_record(const read_outcome& now, const evidence& judged) {
    return now.state == reading::seen && now.facts.same_inode(judged.file) &&
           now.facts.modified_ns == judged.file.modified_ns && same_acquisition(now.what.value, judged.rec);
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
    if (error || removed) co_return false;
    c.where.where->links_work.store(true, std::memory_order_relaxed);
    co_return true;
}

/// Whether the name leads to the file, whatever was said of that.
task<bool> is_back(contender& c, const os::file& file, const std::string& path) {
    const auto mine = co_await c.world.facts(file);
    const auto there = co_await c.world.facts_at(path);
    co_return mine && there && there->same_inode(*mine);
}

task<std::error_code> put_back(contender& c, const os::file& file, const std::string& aside,
                               const std::string& path) {
    auto error = co_await c.world.link(file, aside, path);
    if (is(error, EIO)) error = co_await c.world.link(file, aside, path);
    bool settled = !error || is(error, EEXIST);
    if (!settled) settled = co_await is_back(c, file, path);
    if (!settled) {
        const auto renamed = co_await c.world.rename_exclusive(aside, path);
        if (!renamed) co_return renamed;
        settled = is(renamed, EEXIST);
        if (!settled) settled = co_await is_back(c, file, path);
    }
    if (!settled) co_return error;
    // What is left of it now is a private name, which a sweep removes.
    (void)co_await c.world.unlink(aside);
    co_return std::error_code();
}

/// Where nothing can be put back: compare, and remove on its heels.
task<reclaim_outcome> compare_and_remove(contender& c, const std::string& path, const evidence& judged) {
    const auto now = co_await read_record_at(c.world, path, c.where.kind());
    if (!same_record(now, judged)) co_return ended(reclaiming::changed);
    const auto error = co_await c.world.unlink(path);
    if (error) co_return could_not(error);
    co_return ended(reclaiming::removed);
}

}  // namespace

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

reclaim_outcome could_not(std::error_code error) {
    // EAGAIN: somebody has a lease on the file (fcntl(2)), which the kernel is calling back.
    if (is(error, ENOENT) || is(error, ESTALE) || is(error, EIO) || is(error, EAGAIN))
        return ended(reclaiming::changed);
    return failure(error);
}

task<reclaim_outcome> take_removal(contender& c, const std::string& path, const finding& judged,
                                   removal_lock& lock) {
    auto opened = co_await c.world.open(path, os::access::read_write, c.where.kind());
    if (!opened) {
        const auto error = opened.error();
        if (!is(error, EACCES) && !is(error, EPERM) && !is(error, EROFS)) co_return could_not(error);
        lock.denied = error;
        co_return ended(reclaiming::clear);
    }
    lock.file = std::move(*opened);
    const auto facts = co_await c.world.facts(lock.file);
    if (!facts || !facts->same_inode(judged.evidence.file)) co_return ended(reclaiming::changed);
    lock.kind = kind_for_removal(c, judged);
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

}  // namespace fslock::core
