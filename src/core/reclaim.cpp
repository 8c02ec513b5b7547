#include "reclaim.hpp"

#include "system_code.hpp"

namespace fslock::core {
namespace {

using os::witness_kind;

/// The witness by which the owner of `f` keeps those away who remove it by order.
witness_kind guard_of(const contender& c, const finding& f) {
    return c.where.shared() ? witness_kind::none : f.evidence.rec.guard;
}

/// Whether a record whose owner may live can be removed with what `taken` came to.
reclaim_outcome enough_for_an_order(const contender& c, reclaim_outcome taken, const finding& f,
                                    const removal_lock& lock) {
    // There is one flock only, and it is the owner's.
    if (guard_of(c, f) == witness_kind::flock && taken.state == reclaiming::busy) return ended(reclaiming::clear);
    if (taken.state != reclaiming::clear) return taken;
    if (lock.denied) return failure(lock.denied);
    if (guard_of(c, f) == witness_kind::ofd && !lock.ours)
        return failure(system_code(EOPNOTSUPP));
    return taken;
}

/// What stands in the place of a record that is being removed by order. It is judged by silence while its writer lives,
/// who may fail to remove it; without it, by that. Of the length of the record, if that can be: a beat that comes late
/// and overwrites it leaves nothing of it behind then, nor does it of the record.
std::string stand_in(contender& c, const finding& f, std::size_t length, std::string& epoch) {
    auto r = own_record(c.world, c.opts, witness_kind::none, epoch_stamp(f.evidence.rec.writer_epoch));
    r.process_start_time.reset();
    r.label = breaking_label;
    epoch = r.writer_epoch;
    auto text = format(r);
    if (text.size() > length) {
        r.label.clear();
        text = format(r);
    }
    if (text.size() < length) text.insert(text.size() - 1, length - text.size(), ' ');
    return text;
}

/// Writes into the record, as its owner beats: it cannot meet another file. From now on every look of the owner finds
/// another epoch.
task<reclaim_outcome> overwrite(contender& c, const finding& f, std::string& epoch) {
    auto there = co_await read_record_at(c.world, c.where.path(), c.where.kind(), os::access::read_write);
    if (there.state == reading::failed) co_return could_not(there.error);
    const bool same = there.state == reading::seen && there.facts.same_inode(f.evidence.file) &&
                      there.what.value.writer_epoch == epoch;
    if (!same) co_return ended(reclaiming::changed);
    const auto text = stand_in(c, f, there.facts.size, epoch);
    auto error = co_await c.world.write(there.file, text);
    if (!error && c.where.shared()) error = co_await c.world.sync(there.file);
    if (error) co_return failure(error);
    co_return ended(reclaiming::clear);
}

/// Waits until an owner that lives cannot be between its last look and its removal any more. `epoch` is the one that
/// stands in the record then.
task<reclaim_outcome> displace(contender& c, const finding& f, std::string& epoch) {
    const auto guard = guard_of(c, f);
    if (guard == witness_kind::ofd) co_return ended(reclaiming::clear);  // it needs byte 1 for that, which is ours
    if (guard == witness_kind::none) {
        const auto out = co_await overwrite(c, f, epoch);
        if (out.state != reclaiming::clear) co_return out;
    }
    // With a flock, an owner that looks from now on sees the token.
    const auto woken = co_await c.sleeper.sleep(c.world.now() + settle_time(c.where.kind()));
    co_return ended(woken == wake::cancelled ? reclaiming::cancelled : reclaiming::clear);
}

/// Step 3, and step 4 on its heels.
task<reclaim_outcome> remove_judged(contender& c, const finding& f, const removal_lock& lock, ground why,
                                    const std::string& epoch) {
    const auto& path = c.where.path();
    if (c.where.shared()) {
        const auto again =
            co_await examine(c.world, c.where, path, subject::lock, c.opts, c.seen.lock, c.mine);
        const bool due = why == ground::order || again.judged.what == fate::dead;
        const bool same = again.state == reading::seen && due && again.evidence.file.same_inode(f.evidence.file) &&
                          again.evidence.rec.writer_epoch == epoch;
        if (!same) co_return ended(reclaiming::changed);
        co_return co_await move_aside(c, path, again.evidence, c.mine);
    }
    // The judged file is open, so its inode number is not used again: same number, same file.
    const auto now = co_await c.world.facts_at(path);
    if (!now) co_return could_not(now.error());
    if (!now->same_inode(f.evidence.file)) co_return ended(reclaiming::changed);
    if (why == ground::order) {
        const auto again = co_await read_again(c.world, f.file);
        const bool named = again.state == reading::seen && again.what.value.writer_epoch == epoch;
        if (!named) co_return ended(reclaiming::changed);
    } else {
        const auto again = co_await judge_again(c.world, c.where, f, c.opts, c.seen.lock, c.mine, lock.held());
        if (again.what != fate::dead) co_return ended(reclaiming::busy);
    }
    const auto error = co_await c.world.unlink(path);
    if (error) co_return could_not(error);
    co_return ended(reclaiming::removed);
}

}  // namespace

task<reclaim_outcome> reclaim(contender& c, const finding& found, ground why) {
    removal_lock lock;
    if (!c.where.shared()) {
        auto taken = co_await take_removal(c, c.where.path(), found, lock);
        if (why == ground::order) taken = enough_for_an_order(c, std::move(taken), found, lock);
        if (taken.state != reclaiming::clear) {
            (void)co_await give_back(c, lock);
            co_return taken;
        }
    }
    token t;
    if (why == ground::order) t.label = breaking_label;
    auto out = co_await take_token(c, t, lock.ours);
    auto epoch = found.evidence.rec.writer_epoch;
    if (out.state == reclaiming::clear && why == ground::order) out = co_await displace(c, found, epoch);
    if (out.state == reclaiming::clear) out = co_await remove_judged(c, found, lock, why, epoch);
    (void)co_await drop_token(c, t);
    (void)co_await give_back(c, lock);
    out.epoch = std::move(epoch);
    co_return out;
}

}  // namespace fslock::core
