// From its turn to the completion of an acquisition.
#include "../core/reports.hpp"
#include "../os/posix_world.hpp"
#include "pool.hpp"
#include "registry.hpp"

namespace fslock::engine {

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
        if (op->listens() && std::exchange(op->stirred, false)) {
            woken = core::wake::event;
            continue;
        }
        op->at = phase::waiting;
        schedule(*op, op->wake_at());
        return;
    }
    finish(op);
}

void registry::finish(const std::shared_ptr<operation>& op) noexcept {
    const auto out = op->outcome();
    // Before the handler can run: who asks again finds nobody in line.
    if (out.how != core::ending::owned) {
        op->clean_up();
        op->mine.pass_on();
    }
    switch (out.how) {
        case core::ending::owned: {
            auto on_disk = op->take_holder();
            auto held = make_held(std::move(op->mine), std::move(on_disk), op->opts(), op->told());
            complete(op, {}, detail::make_guard(std::move(held)));
            clean_up_later(op);
            break;
        }
        case core::ending::timed_out: complete(op, {}, {}); break;
        case core::ending::cancelled: complete(op, asio::error::operation_aborted, {}); break;
        case core::ending::failed: complete(op, detail::to_public(out.error), {}); break;
    }
    op->needed.reset();  // after the release of a lock that came too late counts by itself
}

/// The last close of a record that is gone, and of its watch, takes longer than to tell whose turn it is.
void registry::clean_up_later(const std::shared_ptr<operation>& op) noexcept {
    if (!op->has_left_over()) return;
    {
        const std::lock_guard lock(mutex_);
        if (!shut_ && !op->slow()) {
            asio::post(executor_, [op] { op->clean_up(); });
            return;
        }
    }
    op->clean_up();
}

/// A lock that nobody waits for any more goes back as `lock` dies, after the mutex.
void registry::complete(const std::shared_ptr<operation>& op, error_code ec, lock_guard lock) noexcept {
    const std::lock_guard guard(mutex_);
    complete_locked(op, ec, lock);
}

void registry::complete_locked(const std::shared_ptr<operation>& op, error_code ec, lock_guard& lock) noexcept {
    op->at = phase::finished;
    op->unschedule();
    leave_queue(op);
    const auto done = std::exchange(op->done_handler, nullptr).release();
    if (done == nullptr) return;
    operations_.erase(op->in_registry);
    // What wakes for the new lock comes after its handler; until then the context must not run out of work.
    const auto work = detail::tracked(executor_);
    done->complete(ec, std::move(lock));
    wake_in_time();
}

/// For what the steps of `op` may still have to take back once nobody waits for it.
void registry::need_before_exit(operation& op) {
    if (op.slow() && (op.at == phase::running || op.at == phase::waiting)) op.needed = pool::instance().needed();
}

/// Completes an operation that is queued, or whose steps hang: what its thread gets afterwards goes back.
void registry::give_up(const std::shared_ptr<operation>& op, error_code ec) noexcept {
    lock_guard none;
    op->cancelled = true;
    const auto was = op->at;
    need_before_exit(*op);  // before its handler can run, and end the program
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
        op->unschedule();
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

}  // namespace fslock::engine
