// From the call of an acquisition to its turn.
#include <algorithm>

#include "../core/claim.hpp"
#include "../core/system_code.hpp"
#include "../os/posix_world.hpp"
#include "directories.hpp"
#include "fslock/error.hpp"
#include "pool.hpp"
#include "registry.hpp"

namespace fslock::engine {
namespace {

constexpr auto grace_of_slow_calls = std::chrono::seconds(1);

core::task<os::result<os::file_facts>> directory_facts(os::world& w, const std::string& path) {
    co_return co_await w.directory(path);
}

std::optional<steady> deadline_of(const detail::wait_limit& limit) {
    if (!limit) return {};
    return os::this_world().now() + *limit;
}

/// Whether the lock is to be left to other processes for a moment. One attempt is an attempt now.
bool has_to_yield(path_entry& entry, const detail::wait_limit& limit) {
    if (!entry.seen) return false;
    auto& until = entry.seen->yield_until;
    if (!until || (limit && *limit <= steady::duration::zero())) return false;
    if (os::this_world().now() >= *until) until.reset();
    return until.has_value();
}

}  // namespace

/// The directory, if it is known to be local and calls there cannot hang; null if that has to be found out.
std::shared_ptr<const core::directory> registry::ready_directory(const core::lock_name& name, const options& o,
                                                                 std::error_code& ec) {
    auto where = directories::instance().known(name.directory());
    if (!where || where->shared() || o.durability == durability::full) return nullptr;
    const auto now = core::run_to_end(directory_facts(os::this_world(), where->path));
    ec = now.error();
    return now && now->same_inode(where->facts.file) ? where : nullptr;
}

detail::started registry::start(const asio::any_io_executor& io, std::filesystem::path path, options o,
                                detail::wait_limit limit) {
    detail::started out;
    std::error_code wrong = check(o);
    core::lock_name name;
    if (!wrong) wrong = core::split(path, name);
    std::shared_ptr<const core::directory> where;
    if (!wrong) where = ready_directory(name, o, wrong);
    if (wrong) {
        out.error = detail::to_public(wrong);
        return out;
    }
    optional_reporter told({});
    if (o.on_event) {
        auto sink = std::make_shared<event_sink>(weak_from_this(), io, std::exchange(o.on_event, nullptr));
        told = optional_reporter(sink);
        const std::lock_guard lock(mutex_);
        if (shut_) {
            out.error = asio::error::operation_aborted;
            return out;
        }
        list_sink(sink);
    }
    const auto deadline = deadline_of(limit);
    core::place place{where, std::move(name)};
    turn mine;
    if (where) {
        const std::lock_guard lock(mutex_);
        // Behind those who came while the directory was being looked at.
        if (!resolving_.empty() && resolving_.contains(std::string(place.lock.directory()))) {
            place.where = nullptr;
            where = nullptr;
        }
    }
    if (where) {
        const std::lock_guard lock(mutex_);
        auto& entry = entry_of(where->facts.file, place.lock.name());
        if (entry.taken && limit && *limit <= steady::duration::zero()) return out;
        if (!std::exchange(entry.taken, true)) mine = turn(shared_from_this(), entry);
    }
    if (mine && !has_to_yield(mine.entry(), limit)) {
        claim_at_once(out, std::move(mine), std::move(place), std::move(o), deadline, std::move(told));
        return out;
    }
    out.waiting = std::make_shared<operation>(shared_from_this(), std::move(place), std::move(o), deadline,
                                              std::move(told));
    out.waiting->at = where ? phase::queued : phase::unresolved;
    if (mine) {
        out.waiting->prepare(std::move(mine), {}, false);
        out.waiting->at = phase::ready;
    }
    return out;
}

void registry::claim_at_once(detail::started& out, turn mine, core::place where, options o,
                             std::optional<steady> deadline, optional_reporter told) {
    auto& w = os::this_world();
    core::prepared prepared;
    const auto error = core::run_to_end(core::claim(w, where, where.path(), o, prepared, 0));
    if (!error) {
        core::holder on_disk(std::move(where), std::move(prepared), w.now());
        out.lock = detail::make_guard(make_held(std::move(mine), std::move(on_disk), o, std::move(told)));
        const std::lock_guard lock(mutex_);
        wake_in_time();
    } else if (core::is(error, EEXIST)) {
        out.waiting = std::make_shared<operation>(shared_from_this(), std::move(where), std::move(o), deadline,
                                                  std::move(told));
        out.waiting->prepare(std::move(mine), std::move(prepared), true);
        out.waiting->at = phase::ready;
    } else {
        out.error = detail::to_public(error);
    }
}

std::shared_ptr<held_lock> registry::make_held(turn mine, core::holder on_disk, const options& o,
                                               optional_reporter told) {
    auto held =
        std::make_shared<held_lock>(shared_from_this(), std::move(mine), std::move(on_disk), o, std::move(told));
    {
        const std::lock_guard lock(mutex_);
        if (!shut_) hold(*held);
    }
    if (!held->sink() || held->slow()) return held;
    // Somebody can be told of a loss. One who cannot is told at the first heartbeat, so that a short turn pays nothing.
    watch(held);
    held->look();
    return held;
}

/// The first beat comes anywhere within an interval, so that locks taken together do not beat together.
void registry::hold(held_lock& lock) {
    lock.entry().holder = &lock;
    if (lock.slow()) {
        lock.is_work = true;
        ++held_away_;
    }
    spread_ += 0x9E3779B9U;  // the golden ratio: evenly spread, however many there are
    const auto interval = std::chrono::duration_cast<steady::duration>(lock.interval());
    put(lock, os::this_world().now() + interval / 1024 * ((spread_ >> 22) + 1));
}

void registry::unhold(held_lock& held) noexcept {
    if (inherited()) return;
    watches none;
    {
        const std::lock_guard guard(mutex_);
        held.unschedule();
        end_work_locked(held);
        if (held.has_turn()) held.entry().holder = nullptr;
        std::swap(none, held.watched_by);
        want_settle();
    }
    unwatch(none, held);
}

void registry::end_work(held_lock& held) noexcept {
    const std::lock_guard guard(mutex_);
    end_work_locked(held);
    want_settle();
}

void registry::end_work_locked(held_lock& held) noexcept {
    if (std::exchange(held.is_work, false)) --held_away_;
}

bool registry::take_or_queue(const std::shared_ptr<operation>& op) {
    auto& entry = entry_of(op->where().where->facts.file, op->where().lock.name());
    if (!std::exchange(entry.taken, true)) {
        op->prepare(turn(shared_from_this(), entry), {}, false);
        op->at = phase::running;
        return true;
    }
    op->at = phase::queued;
    op->entry = &entry;
    op->in_queue = entry.queue.insert(entry.queue.end(), op);
    if (op->deadline()) schedule(*op, *op->deadline());
    return false;
}

/// For an operation that may hang. One attempt is owed to it, however short its deadline: a call that takes longer
/// than the grace hangs.
void registry::schedule_give_up(const std::shared_ptr<operation>& op) {
    if (!op->deadline()) return;
    schedule(*op, std::max(*op->deadline(), os::this_world().now()) + grace_of_slow_calls);
}

void registry::leave_queue(const std::shared_ptr<operation>& op) noexcept {
    if (op->entry == nullptr) return;
    std::exchange(op->entry, nullptr)->queue.erase(op->in_queue);
}

void registry::submit(const std::shared_ptr<operation>& op, detail::acquire_completion done) {
    bool to_run = false;
    bool to_resolve = false;
    std::string lane;
    {
        const std::lock_guard lock(mutex_);
        if (!shut_) {
            op->done_handler = std::move(done);
            op->in_registry = operations_.insert(operations_.end(), op);
            to_resolve = op->at == phase::unresolved;
            if (op->at == phase::ready) {
                op->at = phase::running;
                to_run = true;
            } else if (op->at == phase::queued) {
                to_run = take_or_queue(op);
            } else {
                lane = lane_to_resolve(*op);
                schedule_give_up(op);
            }
        }
    }
    if (to_resolve) resolve(op, lane);
    if (to_run) run(op, core::wake::due);
    if (!to_resolve && !to_run) report_queued(op);
}

/// Where the directory of `op` is looked at: behind those who came before, in their lane, or nobody would be served in
/// order. The first goes where else things hang on that filesystem, if it is known on which the directory was last.
const std::string& registry::lane_to_resolve(const operation& op) {
    auto& r = resolving_[std::string(op.where().lock.directory())];
    if (r.operations++ == 0) {
        const auto before = directories::instance().known(op.where().lock.directory());
        r.lane = before ? before->lane() : op.lane();
    }
    return r.lane;
}

/// On the pool: the look may hang. In the lane of the filesystem the rest is done in the same job.
void registry::resolve(const std::shared_ptr<operation>& op, const std::string& lane) noexcept {
    auto job = [self = shared_from_this(), op, lane] {
        auto where = directories::instance().look(os::this_world(), op->where().lock.directory());
        if (where) {
            self->admit(op, std::move(*where), lane);
        } else {
            self->resolution_failed(op, detail::to_public(where.error()));
        }
    };
    try {
        pool::instance().submit(lane, std::move(job));
    } catch (const std::system_error& e) {
        resolution_failed(op, detail::to_public(e.code()));
    }
}

void registry::resolution_failed(const std::shared_ptr<operation>& op, error_code ec) noexcept {
    {
        const std::lock_guard lock(mutex_);
        resolved(op);
    }
    complete(op, ec, {});
}

void registry::resolved(const std::shared_ptr<operation>& op) noexcept {
    const auto at = resolving_.find(std::string(op->where().lock.directory()));
    if (at != resolving_.end() && --at->second.operations == 0) resolving_.erase(at);
}

void registry::admit(const std::shared_ptr<operation>& op, std::shared_ptr<const core::directory> where,
                     const std::string& lane) noexcept {
    bool queued = false;
    {
        const std::lock_guard lock(mutex_);
        resolved(op);
        if (shut_ || op->cancelled) return;
        op->found(std::move(where));
        op->unschedule();
        queued = !take_or_queue(op);
    }
    if (queued) {
        report_queued(op);
    } else if (op->slow() && op->lane() == lane) {
        {
            const std::lock_guard lock(mutex_);
            if (op->done_handler != nullptr) schedule_give_up(op);
        }
        run_here(op, core::wake::due);
    } else {
        run(op, core::wake::due);
    }
}

}  // namespace fslock::engine
