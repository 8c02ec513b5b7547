// What wakes waiters and holders: time, and the kernel.
#include "../os/posix_world.hpp"
#include "alarm.hpp"
#include "pool.hpp"
#include "registry.hpp"

namespace fslock::engine {
namespace {

constexpr auto forget_sightings_after = std::chrono::minutes(15);
/// A suspension that is worth a heartbeat out of turn.
constexpr auto long_suspension = std::chrono::seconds(1);
/// One wake-up of the loop serves all that is due about now.
constexpr auto together = std::chrono::milliseconds(100);

/// How early a heartbeat, or a look, may come.
steady::duration early_by(const due_item& item) {
    if (item.kind() == due_kind::beat)
        return std::min<steady::duration>(together, static_cast<const held_lock&>(item).interval() / 8);
    const auto& op = static_cast<const operation&>(item);
    return op.at == phase::waiting ? std::min<steady::duration>(together, op.wait_length() / 32) : steady::duration();
}

}  // namespace

// ---- time ------------------------------------------------------------------------------------------------------

template <class Item>
void registry::put(Item& item, steady when) {
    (item.slow() ? away_ : here_).due.schedule(item, when);
}

template void registry::put(held_lock&, steady);
template void registry::put(operation&, steady);

void registry::set_alarm() {
    if (shut_ || !away_.needs_tick()) return;
    try {
        const auto when = away_.due.earliest();
        alarm::instance().at(when, [weak = weak_from_this(), when] {
            if (const auto self = weak.lock()) self->tick(self->away_, when);
        });
        away_.ticks.push_back(when);
    } catch (const std::system_error&) {
        // No thread to be had: the context has to do.
        const auto first = away_.due.first();
        here_.due.schedule(*first.item, first.due);
        want_settle();
    }
}

bool registry::needs_settling() const noexcept {
    constexpr std::size_t many = 64;
    if (idle_.size() >= many || watcher_.needs_settling()) return true;
    if ((held_away_ != 0) != static_cast<bool>(work_)) return true;
    if (here_.due.empty()) return !here_.ticks.empty() || !idle_.empty();
    return here_.needs_tick();
}

/// One posted step arms or cancels timer, watch and work for however many locks came and went meanwhile. A context that
/// nobody runs is not stopped by the end of its work: that is left to the step as well.
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
    if (watcher_.needs_settling()) {
        watcher_.settle([weak = weak_from_this()](error_code ec) {
            if (const auto self = weak.lock()) self->changed(ec);
        });
    }
    if (held_away_ == 0) {
        work_ = asio::any_io_executor();
    } else if (!work_) {
        work_ = detail::tracked(executor_);
    }
    if (here_.due.empty()) {
        timer_->cancel();
        here_.ticks.clear();
        return;
    }
    if (!here_.needs_tick()) return;
    const auto when = here_.due.earliest();
    here_.ticks.assign(1, when);
    timer_->expires_at(when);
    timer_->async_wait([weak = weak_from_this(), when](error_code ec) {
        if (ec) return;
        if (const auto self = weak.lock()) self->tick(self->here_, when);
    });
}

void registry::collect_due(timeline& of, called& into) {
    auto& w = os::this_world();
    const auto now = w.now();
    // The steady clock stands still while the machine is suspended; owners on other hosts do not.
    const auto suspended = w.suspended();
    if (suspended - std::exchange(of.suspended, suspended) > long_suspension) {
        into.resumed = true;
        const auto entries = of.due.entries();
        for (const auto& e : entries)
            if (e.item->kind() == due_kind::beat) of.due.schedule(*e.item, now);
    }
    while (!of.due.empty()) {
        const auto first = of.due.first();
        if (first.due > now + early_by(*first.item)) return;
        first.item->unschedule();
        if (first.item->kind() == due_kind::beat) {
            collect_beat(of, static_cast<held_lock&>(*first.item), now, into);
        } else {
            collect_wait(static_cast<operation&>(*first.item).shared_from_this(), into);
        }
    }
}

void registry::collect_beat(timeline& of, held_lock& held, steady now, called& into) {
    auto alive = held.weak_from_this().lock();
    if (!alive) return;
    if (held.lost()) {
        into.ended.push_back(std::move(alive));
        return;
    }
    of.due.schedule(held, now + held.interval());
    if (!held.watched_by.asked && held.wants_watching()) into.unwatched.push_back(alive);
    into.holders.push_back(std::move(alive));
}

void registry::collect_wait(std::shared_ptr<operation> op, called& into) {
    if (op->at == phase::waiting) {
        op->at = phase::running;
        into.waiters.push_back(std::move(op));
    } else {
        give_up(op, {});
        into.ended.push_back(std::move(op));
    }
}

/// Comes at `when`, or early: after a suspension, alarms do.
void registry::tick(timeline& of, steady when) {
    if (inherited()) return;
    called all;
    {
        const std::lock_guard lock(mutex_);
        if (shut_) return;
        while (!of.ticks.empty() && of.ticks.back() <= when) of.ticks.pop_back();
        collect_due(of, all);
    }
    const auto look_and_beat = [&] {
        for (const auto& held : all.unwatched) watch(held);
        for (const auto& held : all.holders) beat(held);
    };
    // A beat has time until the next one, unless nobody heard from us for long.
    if (all.resumed) look_and_beat();
    for (const auto& op : all.waiters) run(op, core::wake::due);
    if (!all.resumed) look_and_beat();
    const std::lock_guard lock(mutex_);
    wake_in_time();
}

void registry::beat(const std::shared_ptr<held_lock>& held) {
    if (!held->slow()) {
        held->beat();
        return;
    }
    if (!held->begins_beat()) return;
    // Beside the other calls to that filesystem: they may be many.
    try {
        pool::instance().submit(held->lane() + " heartbeats", [held] { held->beat(); });
    } catch (...) {
        held->beat();
    }
}

// ---- the kernel ------------------------------------------------------------------------------------------------

os::result<int> registry::watch_record(operation& op, const std::string& path) {
    const auto id = watcher_.watch_record(op.shared_from_this(), path);
    const std::lock_guard lock(mutex_);
    want_settle();
    return id;
}

std::error_code registry::watch_process(operation& op, int pid) {
    return watcher_.watch_process(op, pid, [weak = op.weak_from_this()] {
        if (const auto waiting = weak.lock()) waiting->home->process_ended(waiting);
    });
}

void registry::unwatch(operation& op, std::optional<int> record, bool process) noexcept {
    if (inherited()) return;
    if (record) watcher_.unwatch_record(*record, op);
    if (process) watcher_.unwatch_process(op);
    const std::lock_guard lock(mutex_);
    want_settle();
}

/// Once for each held lock; again after an error, at the next beat.
void registry::watch(const std::shared_ptr<held_lock>& held) noexcept {
    {
        const std::lock_guard lock(mutex_);
        if (shut_ || held->watched_by.asked || !held->wants_watching()) return;
        held->watched_by.asked = true;
    }
    watches made;
    if (const auto id = watcher_.watch_record(held, held->path())) made.record = *id;
    if (const auto id = watcher_.watch_directory(held->directory())) made.directory = *id;
    bool in_vain = false;
    {
        const std::lock_guard lock(mutex_);
        in_vain = !held->scheduled();
        if (!in_vain) {
            made.asked = made.record.has_value();
            std::swap(made, held->watched_by);
        }
        want_settle();
    }
    unwatch(made, *held);
}

void registry::unwatch(const watches& w, const held_lock& held) noexcept {
    if (w.record) watcher_.unwatch_record(*w.record, held);
    if (w.directory) watcher_.unwatch_directory(*w.directory);
}

void registry::stir(const std::shared_ptr<due_item>& item, called& into) {
    if (item->kind() == due_kind::beat) {
        into.holders.push_back(std::static_pointer_cast<held_lock>(item));
        return;
    }
    auto op = std::static_pointer_cast<operation>(item);
    if (op->at != phase::waiting || !op->listens()) {
        op->stirred = true;
        into.ended.push_back(std::move(op));
        return;
    }
    op->unschedule();
    op->at = phase::running;
    into.waiters.push_back(std::move(op));
}

void registry::changed(error_code ec) {
    if (inherited()) return;
    watcher::heard heard;
    if (ec) {
        watcher_.not_read();
    } else {
        heard = watcher_.read();
    }
    called all;
    {
        const std::lock_guard lock(mutex_);
        if (shut_) return;
        if (heard.everybody) {
            for (const auto& [due, item] : here_.due.entries()) {
                auto alive = item->kind() == due_kind::beat
                                 ? watcher::item(static_cast<held_lock*>(item)->weak_from_this().lock())
                                 : watcher::item(static_cast<operation*>(item)->shared_from_this());
                if (alive) heard.whom.push_back(std::move(alive));
            }
        }
        for (const auto& item : heard.whom) stir(item, all);
        want_settle();
    }
    answer(all);
}

void registry::process_ended(const std::shared_ptr<operation>& op) {
    if (inherited()) return;
    called all;
    {
        const std::lock_guard lock(mutex_);
        if (shut_) return;
        stir(op, all);
    }
    answer(all);
}

/// A holder who lost the lock has to know before anybody else has it.
void registry::answer(called& what) {
    for (const auto& held : what.holders) held->look();
    for (const auto& op : what.waiters) run(op, core::wake::event);
}

}  // namespace fslock::engine
