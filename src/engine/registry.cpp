// Who has the turn, whom to tell, and the end.
#include "registry.hpp"

#include <algorithm>

#include "../core/record.hpp"
#include "../os/posix_world.hpp"
#include "pool.hpp"

namespace fslock::engine {

/// A key to look up with, without a copy of the name.
struct path_key_view {
    std::uint64_t device;
    std::uint64_t inode;
    std::string_view name;
};

namespace {

std::size_t hash_of(std::uint64_t device, std::uint64_t inode, std::string_view name) noexcept {
    const std::size_t h = std::hash<std::string_view>()(name);
    return h ^ (std::hash<std::uint64_t>()(inode * 0x9E3779B97F4A7C15ULL + device) << 1);
}

/// Operations that got the turn on this thread and wait to be run: a chain of turns is a loop, not a recursion.
thread_local std::vector<std::shared_ptr<operation>>* turns = nullptr;

/// Whether what this process saw there is worth keeping.
bool was_seen(const path_entry& entry) {
    if (!entry.seen) return false;
    const auto& seen = *entry.seen;
    return seen.lock.inode != 0 || seen.token.inode != 0 || seen.blocked_reported || seen.yield_until ||
           seen.crowd.is_one();
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
    : generation_(os::fork_generation()), executor_(std::move(executor)), timer_(executor_), watcher_(executor_) {
    core::prepare_to_read();
    here_.suspended = away_.suspended = os::this_world().suspended();
}

bool registry::inherited() const noexcept { return generation_ != os::fork_generation(); }

asio::any_io_executor registry::executor() const {
    if (inherited()) return asio::system_executor();
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

void registry::forget_idle(std::vector<idle_entry>& idle, steady until) {
    auto at = idle.begin();
    for (; at != idle.end() && at->since <= until; ++at) {
        auto& entry = *at->entry;
        entry.idle_noted = false;
        if (entry.taken || !entry.queue.empty()) continue;
        if (&idle == &idle_ && was_seen(entry)) {
            entry.idle_noted = true;
            idle_but_seen_.push_back({&entry, until});
        } else {
            entries_.erase(*entry.key);
        }
    }
    idle.erase(idle.begin(), at);
}

void registry::run_in_turn(std::shared_ptr<operation> op) {
    if (turns != nullptr) {
        turns->push_back(std::move(op));
        return;
    }
    std::vector<std::shared_ptr<operation>> mine;
    mine.push_back(std::move(op));
    turns = &mine;
    while (!mine.empty()) {
        const auto next = std::move(mine.front());
        mine.erase(mine.begin());
        next->home->run(next, core::wake::due);
    }
    turns = nullptr;
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
        next->unschedule();
        next->prepare(turn(shared_from_this(), entry), {}, false);
        next->entry = nullptr;
        next->at = phase::running;
    }
    run_in_turn(std::move(next));
}

// ---- reports and steps of guards --------------------------------------------------------------------------------

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

std::shared_ptr<slow_step> registry::park(slow_step step) {
    auto parked = std::make_shared<slow_step>(std::move(step));
    const std::lock_guard lock(mutex_);
    if (!shut_) slow_steps_.push_back(parked);
    return parked;
}

void registry::finish(const std::shared_ptr<slow_step>& step, error_code ec, bool ours) noexcept {
    const std::lock_guard lock(mutex_);
    // What began after the context had ended is not listed, and what ended with it has no handler any more.
    slow_steps_.remove(step);
    if (auto* const done = step->verified.release()) done->complete(ec, ours);
    if (auto* const done = step->released.release()) done->complete(ec);
}

// ---- losses ----------------------------------------------------------------------------------------------------

void registry::await_loss(const std::shared_ptr<lost_wait>& wait, detail::completion_ptr<error_code> done) {
    const auto& held = wait->lock;
    {
        const std::lock_guard lock(mutex_);
        wait->done = std::move(done);
        held->set_awaited();  // before the look: a release says that it is one, then looks for waits
        if (shut_ || held->lost() || held->released()) {
            wait->done.release()->complete(held->lost() ? error_code() : asio::error::operation_aborted);
            return;
        }
        loss_waits_[held.get()].push_back(wait);
    }
    if (held->slow()) return;  // a look may hang: the next heartbeat is one
    watch(held);
    held->look();
}

void registry::cancel(const std::shared_ptr<lost_wait>& wait) {
    if (inherited()) return;
    const std::lock_guard lock(mutex_);
    const auto at = loss_waits_.find(wait->lock.get());
    if (at == loss_waits_.end() || std::erase(at->second, wait) == 0) return;
    if (at->second.empty()) loss_waits_.erase(at);
    wait->done.release()->complete(asio::error::operation_aborted);
}

/// In one step: whoever knows of the loss must not find somebody who still waits for it.
void registry::lose(held_lock& held) noexcept {
    std::vector<std::shared_ptr<lost_wait>> ended;
    const std::lock_guard lock(mutex_);
    held.set_lost();
    ended = take_loss_waits(held, {});
}

void registry::end_loss_waits(const held_lock& held, error_code ec) noexcept {
    if (inherited()) return;
    std::vector<std::shared_ptr<lost_wait>> ended;  // may be the last to have the lock: dies after the mutex
    const std::lock_guard lock(mutex_);
    ended = take_loss_waits(held, ec);
}

std::vector<std::shared_ptr<lost_wait>> registry::take_loss_waits(const held_lock& held, error_code ec) noexcept {
    std::vector<std::shared_ptr<lost_wait>> ended;
    const auto at = loss_waits_.find(&held);
    if (at == loss_waits_.end()) return ended;
    ended.swap(at->second);
    loss_waits_.erase(at);
    for (const auto& wait : ended) wait->done.release()->complete(ec);
    return ended;
}

// ---- forks -----------------------------------------------------------------------------------------------------

void registry::after_fork_in_parent() {
    watcher_.after_fork_in_parent();
    const std::lock_guard lock(mutex_);
    want_settle();
}

/// The context of the child has no work with the locks of the parent.
void registry::after_fork_in_child() noexcept {
    watcher_.after_fork_in_child();
    // Without the mutex, as only `settle` changes it. Posted, or a context that nobody runs yet would be stopped.
    if (work_) asio::post(std::exchange(work_, asio::any_io_executor()), [] {});
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
    std::unordered_map<const held_lock*, std::vector<std::shared_ptr<lost_wait>>> loss_waits;
    std::vector<detail::completion_ptr<error_code>> loss_handlers;
    std::optional<asio::steady_timer> timer;
    bool needed = false;
    {
        const std::lock_guard lock(mutex_);
        shut_ = true;
        operations.swap(operations_);
        for (const auto& op : operations) {
            op->cancelled = true;
            handlers.push_back(std::exchange(op->done_handler, nullptr));
            leave_queue(op);
            need_before_exit(*op);
            needed = needed || op->needed;
            if (op->at != phase::waiting) continue;
            op->at = phase::running;
            waiting.push_back(op);
        }
        for (const auto& listed : sinks_)
            if (auto sink = listed.lock()) sinks.push_back(std::move(sink));
        sinks_.clear();
        steps.swap(slow_steps_);
        for (const auto& step : steps) step_handlers.push_back(std::move(*step));
        loss_waits.swap(loss_waits_);
        for (const auto& [held, waits] : loss_waits)
            for (const auto& wait : waits) loss_handlers.push_back(std::move(wait->done));
        here_.due.clear();
        away_.due.clear();
        timer.swap(timer_);
        work_ = asio::any_io_executor();
    }
    watcher_.close();
    for (const auto& sink : sinks) sink->close();
    for (const auto& op : waiting) run(op, core::wake::cancelled);
    handlers.clear();  // may run the user's destructors, which may come back here
    timer.reset();
    {
        const std::lock_guard lock(mutex_);
        executor_ = asio::any_io_executor();
    }
    if (needed) pool::instance().wait_if_exiting();
}

}  // namespace fslock::engine
