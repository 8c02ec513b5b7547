#include "breaking.hpp"

#include <algorithm>

#include "fslock/error.hpp"
#include "system_code.hpp"

namespace fslock::core {
namespace {

constexpr milliseconds first_pause{1};

/// What is at the path, as far as it ends the attempt: nothing means that it is the record to be removed, which has
/// the epoch that was asked for, or that of what we wrote over it.
std::optional<break_outcome> nothing_to_break(const finding& f, const std::string& epoch, const std::string& ours) {
    break_outcome out;
    if (f.state == reading::absent) return out;
    if (f.state == reading::failed) out.error = f.error;
    if (f.state == reading::seen && f.judged.what == fate::not_a_lock) out.error = errc::not_a_lock_file;
    if (out.error) return out;
    // A damaged record has no epoch: it goes when nobody completes it.
    const auto& there = f.evidence.rec.writer_epoch;
    const bool named = !there.empty() && (there == epoch || there == ours);
    if (f.state == reading::seen && !named) return out;
    return std::nullopt;
}

}  // namespace

task<break_outcome> break_record(contender& c, std::string epoch) {
    const auto until = c.world.now() + 10 * settle_time(c.where.kind());
    break_outcome out;
    std::string ours;
    for (auto pause = first_pause;; pause *= 2) {
        const auto f = co_await examine(c.world, c.where, c.where.path(), subject::lock, c.opts, c.seen.lock, c.mine);
        if (const auto end = nothing_to_break(f, epoch, ours)) co_return *end;
        if (f.state == reading::seen) {
            auto done = co_await reclaim(c, f, f.judged.what == fate::dead ? ground::death : ground::order);
            out.removed = done.state == reclaiming::removed;
            out.error = done.error;
            out.token_holder = std::move(done.token_holder);
            if (!done.epoch.empty()) ours = std::move(done.epoch);
            if (out.removed || out.error) co_return out;
        }
        const auto then = c.world.now() + pause;
        auto woken = wake::cancelled;
        if (then < until) woken = co_await c.sleeper.sleep(then);
        if (woken == wake::cancelled) break;
    }
    out.error = system_code(EBUSY);
    co_return out;
}

}  // namespace fslock::core
