#include "registry.hpp"

#include <algorithm>
#include <cerrno>

#include "../core/claim.hpp"
#include "../os/posix_world.hpp"
#include "directories.hpp"
#include "fslock/error.hpp"
#include "pool.hpp"

namespace fslock::engine {

/// A key to look up with, without a copy of the name.
struct path_key_view {
    std::uint64_t device;
    std::uint64_t inode;
    std::string_view name;
};

namespace {

constexpr auto grace_of_slow_calls = std::chrono::seconds(1);
constexpr auto forget_sightings_after = std::chrono::minutes(15);

std::size_t hash_of(std::uint64_t device, std::uint64_t inode, std::string_view name) noexcept {
    const std::size_t h = std::hash<std::string_view>()(name);
    return h ^ (std::hash<std::uint64_t>()(inode * 0x9E3779B97F4A7C15ULL + device) << 1);
}

core::task<os::result<os::file_facts>> directory_facts(os::world& w, const std::string& path) {
    co_return co_await w.directory(path);
}

/// Operations that got the turn on this thread and wait to be run: a chain of turns is a loop, not a recursion.
thread_local std::deque<std::function<void()>>* turns = nullptr;

void run_in_turn(std::function<void()> f) {
    if (turns != nullptr) {
        turns->push_back(std::move(f));
        return;
    }
    std::deque<std::function<void()>> mine;
    turns = &mine;
    mine.push_back(std::move(f));
    while (!mine.empty()) {
        const auto next = std::move(mine.front());
        mine.pop_front();
        next();
    }
    turns = nullptr;
}

/// Whether what this process saw there is worth keeping.
bool was_seen(const path_entry& entry) {
    return entry.seen.lock.inode != 0 || entry.seen.token.inode != 0 || entry.seen.blocked_reported;
}

std::optional<steady> deadline_of(const detail::wait_limit& limit) {
    if (!limit) return {};
    return os::this_world().now() + *limit;
}

}  // namespace

std::size_t registry::key_hash::operator()(const path_key& k) const noexcept {
    return hash_of(k.device, k.inode, k.name);
}
std::size_t registry::key_hash::operator()(const path_key_view& k) const noexcept {
    return hash_of(k.device, k.inode, k.name);
}

void turn::pass_on() noexcept {
    if (entry_ == nullptr) return;
    const auto home = std::move(home_);
    home->pass_on(*std::exchange(entry_, nullptr));
}

registry::registry(asio::any_io_executor executor)
    : generation_(os::fork_generation()), executor_(std::move(executor)), timer_(executor_) {}

bool registry::inherited() const noexcept { return generation_ != os::fork_generation(); }

asio::any_io_executor registry::executor() const {
    const std::lock_guard lock(mutex_);
    return shut_ ? asio::any_io_executor(asio::system_executor()) : executor_;
}

// ---- entries ---------------------------------------------------------------------------------------------------

path_entry& registry::entry_of(const os::file_facts& directory, std::string_view name) {
    const path_key_view view{directory.device, directory.inode, name};
    if (const auto at = entries_.find(view); at != entries_.end()) return at->second;
    const auto made = entries_.try_emplace(path_key{directory.device, directory.inode, std::string(name)}).first;
    made->second.key = &made->first;
    return made->second;
}

void registry::note_idle(path_entry& entry) {
    entry.taken = false;
    if (std::exchange(entry.idle_noted, true)) return;
    (was_seen(entry) ? idle_but_seen_ : idle_).push_back({&entry, os::this_world().now()});
    want_settle();
}

void registry::forget_idle(std::deque<idle_entry>& idle, steady until) {
    while (!idle.empty() && idle.front().since <= until) {
        auto& entry = *idle.front().entry;
        idle.pop_front();
        entry.idle_noted = false;
        if (entry.taken || !entry.queue.empty()) continue;
        if (&idle == &idle_ && was_seen(entry)) {
            entry.idle_noted = true;
            idle_but_seen_.push_back({&entry, until});
        } else {
            entries_.erase(*entry.key);
        }
    }
}

void registry::pass_on(path_entry& entry) noexcept {
    if (inherited()) return;
    std::shared_ptr<operation> next;
    {
        const std::lock_guard lock(mutex_);
        entry.holder = nullptr;
        if (entry.queue.empty() || shut_) {
            note_idle(entry);
            return;
        }
        next = std::move(entry.queue.front());
        entry.queue.pop_front();
        due_.remove(*next);
        next->prepare(turn(shared_from_this(), entry), {}, false);
        next->entry = nullptr;
        next->at = phase::running;
    }
    run_in_turn([self = shared_from_this(), next = std::move(next)] { self->run(next, core::wake::due); });
}

// ---- starting --------------------------------------------------------------------------------------------------

/// The directory, if it is known to be local and calls there cannot hang; null if that has to be found out.
std::shared_ptr<const core::directory> registry::ready_directory(const core::lock_name& name, const options& o,
                                                                 error_code& ec) {
    auto where = directories::instance().known(name.directory());
    if (!where || where->shared() || o.durability == durability::full) return nullptr;
    const auto now = core::run_to_end(directory_facts(os::this_world(), where->path));
    ec = now.error();
    return now && now->same_inode(where->facts.file) ? where : nullptr;
}

detail::started registry::start(const asio::any_io_executor& io, std::filesystem::path path, options o,
                                detail::wait_limit limit) {
    detail::started out;
    out.error = check(o);
    if (out.error) return out;
    core::lock_name name;
    out.error = core::split(path, name);
    if (out.error) return out;
    auto where = ready_directory(name, o, out.error);
    if (out.error) return out;
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
    if (mine) {
        claim_at_once(out, std::move(mine), std::move(place), std::move(o), deadline, std::move(told));
    } else {
        out.waiting = std::make_shared<operation>(shared_from_this(), std::move(place), std::move(o), deadline, std::move(told));
        out.waiting->at = where ? phase::queued : phase::unresolved;
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
    } else if (error == std::error_code(EEXIST, std::system_category())) {
        out.waiting = std::make_shared<operation>(shared_from_this(), std::move(where), std::move(o), deadline, std::move(told));
        out.waiting->prepare(std::move(mine), std::move(prepared), true);
        out.waiting->at = phase::ready;
    } else {
        out.error = error;
    }
}

std::shared_ptr<held_lock> registry::make_held(turn mine, core::holder on_disk, const options& o,
                                               optional_reporter told) {
    auto held =
        std::make_shared<held_lock>(shared_from_this(), std::move(mine), std::move(on_disk), o, std::move(told));
    const std::lock_guard lock(mutex_);
    if (!shut_) hold(*held);
    return held;
}

/// The first beat comes after half an interval to a whole one, so that locks taken together do not beat together.
void registry::hold(held_lock& lock) {
    lock.entry().holder = &lock;
    spread_ += 0x9E3779B9U;  // the golden ratio: evenly spread, however many there are
    const auto half = std::chrono::duration_cast<steady::duration>(lock.interval()) / 2;
    due_.schedule(lock, os::this_world().now() + half + half / 1024 * (spread_ >> 22));
    want_settle();
}

void registry::unhold(held_lock& lock) noexcept {
    if (inherited()) return;
    const std::lock_guard guard(mutex_);
    due_.remove(lock);
    if (lock.has_turn()) lock.entry().holder = nullptr;
    want_settle();
}

/// Every sink has the user's executor and function, which must not outlive the context.
void registry::list_sink(const std::shared_ptr<event_sink>& sink) {
    if (sinks_.size() >= prune_sinks_at_) {
        std::erase_if(sinks_, [](const auto& s) { return s.expired(); });
        prune_sinks_at_ = std::max<std::size_t>(64, 2 * sinks_.size());
    }
    sinks_.push_back(sink);
}

void registry::post_delivery(const std::shared_ptr<event_sink>& sink) {
    if (inherited()) return;
    const std::lock_guard lock(mutex_);
    if (!shut_) asio::post(sink->executor(), [sink] { sink->deliver(); });
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
    if (op->deadline()) due_.schedule(*op, *op->deadline());
    want_settle();
    return false;
}

/// For an operation that may hang. One attempt is owed to it, however short its deadline: a call that takes longer
/// than the grace hangs.
void registry::schedule_give_up(const std::shared_ptr<operation>& op) {
    if (!op->deadline()) return;
    due_.schedule(*op, std::max(*op->deadline(), os::this_world().now()) + grace_of_slow_calls);
    want_settle();
}

void registry::leave_queue(const std::shared_ptr<operation>& op) noexcept {
    if (op->entry == nullptr) return;
    std::exchange(op->entry, nullptr)->queue.erase(op->in_queue);
}

void registry::submit(const std::shared_ptr<operation>& op, detail::acquire_completion done) {
    bool to_run = false;
    bool to_resolve = false;
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
                ++resolving_[std::string(op->where().lock.directory())];
                schedule_give_up(op);
            }
        }
    }
    if (to_resolve) resolve(op);
    if (to_run) run(op, core::wake::due);
    if (!to_resolve && !to_run) report_queued(op);
}

/// On the pool: the look may hang.
void registry::resolve(const std::shared_ptr<operation>& op) noexcept {
    auto job = [self = shared_from_this(), op] {
        auto where = directories::instance().look(os::this_world(), op->where().lock.directory());
        if (where) {
            self->admit(op, std::move(*where));
        } else {
            self->resolution_failed(op, where.error());
        }
    };
    try {
        pool::instance().submit(op->lane(), std::move(job));
    } catch (const std::system_error& e) {
        resolution_failed(op, e.code());
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
    if (at != resolving_.end() && --at->second == 0) resolving_.erase(at);
}

void registry::admit(const std::shared_ptr<operation>& op, std::shared_ptr<const core::directory> where) noexcept {
    bool queued = false;
    {
        const std::lock_guard lock(mutex_);
        resolved(op);
        if (shut_ || op->cancelled) return;
        op->found(std::move(where));
        due_.remove(*op);
        queued = !take_or_queue(op);
    }
    if (queued) {
        report_queued(op);
    } else {
        run(op, core::wake::due);
    }
}

// ---- running ---------------------------------------------------------------------------------------------------

void registry::run(const std::shared_ptr<operation>& op, core::wake woken) noexcept {
    if (!op->slow()) {
        run_here(op, woken);
        return;
    }
    {
        const std::lock_guard lock(mutex_);
        if (op->done_handler != nullptr) schedule_give_up(op);
    }
    try {
        pool::instance().submit(op->lane(), [self = shared_from_this(), op, woken] { self->run_here(op, woken); });
    } catch (...) {
        run_here(op, woken);  // no thread to be had: late is better than never
    }
}

/// REQUIRES: the phase is `running`, and it was this thread that made it so.
void registry::run_here(const std::shared_ptr<operation>& op, core::wake woken) noexcept {
    for (;;) {
        op->resume(woken);
        if (op->done()) break;
        const std::lock_guard lock(mutex_);
        if (shut_ || op->cancelled) {
            op->cancelled = true;
            woken = core::wake::cancelled;
            continue;
        }
        op->at = phase::waiting;
        due_.schedule(*op, op->wake_at());
        want_settle();
        return;
    }
    finish(op);
}

void registry::finish(const std::shared_ptr<operation>& op) noexcept {
    const auto out = op->outcome();
    // Before the handler can run: who asks again finds nobody in line.
    if (out.how != core::ending::owned) op->mine.pass_on();
    switch (out.how) {
        case core::ending::owned: {
            auto on_disk = op->take_holder();
            auto held = make_held(std::move(op->mine), std::move(on_disk), op->opts(), op->told());
            complete(op, {}, detail::make_guard(std::move(held)));
            break;
        }
        case core::ending::timed_out: complete(op, {}, {}); break;
        case core::ending::cancelled: complete(op, asio::error::operation_aborted, {}); break;
        case core::ending::failed: complete(op, out.error, {}); break;
    }
}

/// A lock that nobody waits for any more goes back as `lock` dies, after the mutex.
void registry::complete(const std::shared_ptr<operation>& op, error_code ec, lock_guard lock) noexcept {
    const std::lock_guard guard(mutex_);
    complete_locked(op, ec, lock);
}

void registry::complete_locked(const std::shared_ptr<operation>& op, error_code ec, lock_guard& lock) noexcept {
    op->at = phase::finished;
    due_.remove(*op);
    leave_queue(op);
    const auto done = std::exchange(op->done_handler, nullptr).release();
    if (done == nullptr) return;
    operations_.erase(op->in_registry);
    done->complete(ec, std::move(lock));
    want_settle();
}

/// Completes an operation that is queued, or whose steps hang: what its thread gets afterwards goes back.
void registry::give_up(const std::shared_ptr<operation>& op, error_code ec) noexcept {
    lock_guard none;
    op->cancelled = true;
    const auto was = op->at;
    complete_locked(op, ec, none);
    if (was == phase::running) op->at = was;  // its thread still has to end it
}

void registry::cancel(const std::shared_ptr<operation>& op) {
    if (inherited()) return;
    {
        const std::lock_guard lock(mutex_);
        if (op->done_handler == nullptr) return;
        op->cancelled = true;
        const bool waits = op->at == phase::waiting;
        // Not for as long as its clean-up may take, or its present call.
        if (op->slow() || (!waits && op->at != phase::running)) give_up(op, asio::error::operation_aborted);
        if (!waits) return;
        due_.remove(*op);
        op->at = phase::running;
    }
    run(op, core::wake::cancelled);
}

void registry::report_queued(const std::shared_ptr<operation>& op) {
    if (!op->told().sink()) return;
    event e;
    e.kind = event_kind::waiting;
    e.path = op->where().lock.full;
    {
        const std::lock_guard lock(mutex_);
        if (op->at != phase::queued || op->entry == nullptr || op->entry->holder == nullptr) return;
        e.owner = core::describe(op->entry->holder->rec(), os::this_world().self());
        e.proof = proof::process_alive;
    }
    op->told().report(std::move(e));
}

// ---- time ------------------------------------------------------------------------------------------------------

bool registry::needs_settling() const noexcept {
    constexpr std::size_t many = 64;
    if (idle_.size() >= many) return true;
    if (due_.empty()) return armed_for_.has_value() || !idle_.empty();
    return !armed_for_ || due_.earliest() < *armed_for_;
}

/// One posted step arms or cancels the timer for however many locks came and went meanwhile.
void registry::want_settle() {
    if (shut_ || settle_posted_ || !needs_settling()) return;
    settle_posted_ = true;
    asio::post(executor_, [weak = weak_from_this()] {
        if (const auto self = weak.lock()) self->settle();
    });
}

void registry::settle() {
    if (inherited()) return;
    const std::lock_guard lock(mutex_);
    settle_posted_ = false;
    if (shut_) return;
    const auto now = os::this_world().now();
    forget_idle(idle_, now);
    forget_idle(idle_but_seen_, now - forget_sightings_after);
    if (due_.empty()) {
        if (armed_for_) timer_->cancel();
        armed_for_.reset();
        return;
    }
    if (armed_for_ && *armed_for_ <= due_.earliest()) return;
    armed_for_ = due_.earliest();
    timer_->expires_at(*armed_for_);
    timer_->async_wait([weak = weak_from_this()](error_code ec) {
        if (ec) return;
        if (const auto self = weak.lock()) self->tick();
    });
}

void registry::tick() {
    if (inherited()) return;
    std::vector<std::shared_ptr<held_lock>> beats;
    std::vector<std::shared_ptr<operation>> woken;
    std::vector<std::shared_ptr<void>> ended;  // what must not die under the mutex
    {
        const std::lock_guard lock(mutex_);
        if (shut_) return;
        armed_for_.reset();
        const auto now = os::this_world().now();
        while (auto* const item = due_.pop_due(now)) {
            if (item->kind() == due_kind::beat) {
                auto& held = static_cast<held_lock&>(*item);
                auto alive = held.weak_from_this().lock();
                if (!alive) continue;
                if (held.lost()) {
                    ended.push_back(std::move(alive));
                    continue;
                }
                due_.schedule(held, now + held.interval());
                beats.push_back(std::move(alive));
                continue;
            }
            auto op = static_cast<operation&>(*item).shared_from_this();
            if (op->at == phase::waiting) {
                op->at = phase::running;
                woken.push_back(std::move(op));
            } else {
                give_up(op, {});
                ended.push_back(std::move(op));
            }
        }
    }
    // Waiters first: a beat has time until the next one.
    for (const auto& op : woken) run(op, core::wake::due);
    for (const auto& held : beats) beat(held);
    const std::lock_guard lock(mutex_);
    want_settle();
}

void registry::beat(const std::shared_ptr<held_lock>& held) {
    if (!held->slow()) {
        held->beat();
        return;
    }
    try {
        pool::instance().submit(held->lane(), [held] { held->beat(); });
    } catch (...) {
        held->beat();
    }
}

// ---- steps of guards on the pool -------------------------------------------------------------------------------

std::shared_ptr<slow_step> registry::park(slow_step step) {
    auto parked = std::make_shared<slow_step>(std::move(step));
    const std::lock_guard lock(mutex_);
    if (!shut_) slow_steps_.push_back(parked);
    return parked;
}

void registry::finish(const std::shared_ptr<slow_step>& step, error_code ec, bool ours) noexcept {
    const std::lock_guard lock(mutex_);
    const auto at = std::find(slow_steps_.begin(), slow_steps_.end(), step);
    if (at == slow_steps_.end()) return;
    slow_steps_.erase(at);
    if (auto* const done = step->verified.release()) done->complete(ec, ours);
    if (auto* const done = step->released.release()) done->complete(ec);
}

// ---- the end ---------------------------------------------------------------------------------------------------

void registry::shutdown() noexcept {
    if (inherited()) {
        // All of it belongs to the parent, and its mutex may be locked by a thread that is not here.
        (void)new std::shared_ptr<registry>(shared_from_this());
        return;
    }
    std::list<std::shared_ptr<operation>> operations;
    std::vector<detail::acquire_completion> handlers;
    std::vector<std::shared_ptr<operation>> waiting;
    std::vector<std::shared_ptr<event_sink>> sinks;
    std::list<std::shared_ptr<slow_step>> steps;
    std::vector<slow_step> step_handlers;
    std::optional<asio::steady_timer> timer;
    {
        const std::lock_guard lock(mutex_);
        shut_ = true;
        operations.swap(operations_);
        for (const auto& op : operations) {
            op->cancelled = true;
            handlers.push_back(std::exchange(op->done_handler, nullptr));
            leave_queue(op);
            if (op->at != phase::waiting) continue;
            op->at = phase::running;
            waiting.push_back(op);
        }
        for (const auto& listed : sinks_)
            if (auto sink = listed.lock()) sinks.push_back(std::move(sink));
        sinks_.clear();
        steps.swap(slow_steps_);
        for (const auto& step : steps) step_handlers.push_back(std::move(*step));
        due_.clear();
        timer.swap(timer_);
        armed_for_.reset();
    }
    for (const auto& sink : sinks) sink->close();
    for (const auto& op : waiting) run(op, core::wake::cancelled);
    handlers.clear();  // may run the user's destructors, which may come back here
    timer.reset();
    const std::lock_guard lock(mutex_);
    executor_ = asio::any_io_executor();
}

}  // namespace fslock::engine
