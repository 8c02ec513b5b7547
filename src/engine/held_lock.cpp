#include "held_lock.hpp"

#include "../core/reports.hpp"
#include "../os/posix_world.hpp"
#include "alarm.hpp"
#include "blocking.hpp"
#include "fslock/error.hpp"
#include "pool.hpp"
#include "registry.hpp"

namespace fslock::engine {

kept_options::kept_options(const options& o)
    : heartbeat_interval(o.heartbeat_interval),
      events(o.events),
      stale_after_(o.stale_after),
      mode_(o.mode),
      witness_(o.witness) {
    const options usual;
    const bool as_usual = o.foreign_stale_after == usual.foreign_stale_after &&
                          o.foreign_confirm == usual.foreign_confirm && o.malformed_grace == usual.malformed_grace &&
                          o.foreign_content == usual.foreign_content && o.durability == usual.durability;
    if (as_usual) return;
    auto all = std::make_unique<options>(o);
    all->on_event = nullptr;  // the reporter has it
    unusual_ = std::move(all);
}

options kept_options::all() const {
    if (unusual_) return *unusual_;
    options o;
    o.heartbeat_interval = heartbeat_interval;
    o.stale_after = stale_after_;
    o.mode = mode_;
    o.witness = witness_;
    o.events = events;
    return o;
}

held_lock::held_lock(std::shared_ptr<registry> home, turn mine, core::holder on_disk, const options& o,
                     optional_reporter told)
    : due_item(due_kind::beat),
      home_(std::move(home)),
      turn_(std::move(mine)),
      opts_(o),
      told_(std::move(told)),
      generation_(os::fork_generation()),
      on_disk_(std::move(on_disk)),
      last_good_(on_disk_.last_beat()) {}

held_lock::~held_lock() {
    home_->unhold(*this);
    delete as_path_.load();
}

const std::filesystem::path& held_lock::as_path() const {
    const auto* known = as_path_.load();
    if (known != nullptr) return *known;
    auto made = std::make_unique<const std::filesystem::path>(path());
    if (as_path_.compare_exchange_strong(known, made.get())) return *made.release();
    return *known;
}

bool held_lock::inherited() const noexcept { return generation_ != os::fork_generation(); }

void held_lock::report(event_kind kind, std::error_code error, std::uint64_t count, loss why) {
    if (!told_.sink()) return;
    auto& w = os::this_world();
    event e;
    e.kind = kind;
    e.path = path();
    e.owner = core::describe(rec(), w.self());
    e.age = std::chrono::duration_cast<std::chrono::milliseconds>(w.now() - last_good_.load());
    e.error = error;
    e.count = count;
    e.loss = why;
    told_.report(std::move(e));
}

/// Before any owner on another host may judge: their limits are never below three of our intervals.
void held_lock::note_lateness(std::error_code error) {
    const bool late = os::this_world().now() - last_good_.load() > 3 * opts_.heartbeat_interval;
    if (late && !said_at_risk_.exchange(true)) report(event_kind::at_risk, error, failures_);
}

/// REQUIRES: the disk mutex. Says whether the lock is ours.
bool held_lock::note(const core::standing_outcome& out) {
    switch (out.now) {
        case core::standing::ours: return true;
        case core::standing::lost:
            if (!lost_) {
                home_->lose(*this);
                report(event_kind::lost, make_error_code(errc::lost), 0, out.why);
                home_->unhold(*this);  // now the context may run dry
            }
            return false;
        case core::standing::unsure: return false;
    }
    return false;
}

void held_lock::beat() {
    step();
    beating_ = false;
}

void held_lock::step() {
    const std::lock_guard lock(on_disk_mutex_);
    if (released_ || lost_ || inherited()) return;
    const auto out = core::run_to_end(on_disk_.beat(os::this_world()));
    last_good_ = on_disk_.last_beat();
    if (note(out)) {
        const bool risked = said_at_risk_.exchange(false);
        const auto failed = failures_.exchange(0);
        if (failed != 0 || risked) report(event_kind::beat_recovered, {}, failed);
    } else if (out.now == core::standing::unsure) {
        if (++failures_ == 1) report(event_kind::beat_failed, out.error, failures_);
        note_lateness(out.error);
    }
}

bool held_lock::begins_beat() {
    if (!beating_.exchange(true)) return true;
    note_lateness(make_error_code(std::errc::timed_out));
    return false;
}

void held_lock::look() {
    const std::lock_guard lock(on_disk_mutex_);
    if (released_ || lost_ || inherited()) return;
    (void)note(core::run_to_end(on_disk_.verify(os::this_world())));
}

bool held_lock::verify(error_code& ec) {
    ec = {};
    if (inherited()) return false;
    const std::lock_guard lock(on_disk_mutex_);
    if (released_ || lost_) return false;
    const auto out = core::run_to_end(on_disk_.verify(os::this_world()));
    if (out.now == core::standing::unsure) ec = detail::to_public(out.error);
    if (out.now == core::standing::lost) (void)note(out);
    return out.now == core::standing::ours;
}

std::error_code held_lock::remove() noexcept {
    const std::lock_guard lock(on_disk_mutex_);
    blocking_sleeper sleeper;
    optional_reporter nobody({});
    core::sightings fresh;
    auto* const known = has_turn() ? entry().seen.get() : nullptr;
    const auto o = opts_.all();
    core::contender c(os::this_world(), on_disk_.where(), o, sleeper, nobody, known != nullptr ? *known : fresh);
    const auto ec = core::run_to_end(on_disk_.release(c));
    if (fresh.yield_until && has_turn()) entry().seen = std::make_unique<core::sightings>(std::move(fresh));
    return ec;
}

void held_lock::end_loss_waits() const noexcept {
    if (awaited_) home_->end_loss_waits(*this, asio::error::operation_aborted);
}

error_code held_lock::release() noexcept {
    if (inherited() || released_.exchange(true)) return {};
    end_loss_waits();
    const auto ec = remove();  // first of all: others wait for it, and stopping the heartbeats may wake a thread
    home_->unhold(*this);
    if (ec && ec != errc::lost && !on_disk_.guarded()) {
        try_again_after(std::chrono::milliseconds(100));
    } else {
        turn_.pass_on();
    }
    return detail::to_public(ec);
}

/// A record without a witness that could not be removed looks alive for as long as this process lives: to this process
/// too, until it gives up the turn; to others on this host until it is removed.
void held_lock::try_again_after(std::chrono::milliseconds pause) noexcept {
    static constexpr std::chrono::milliseconds longest = std::chrono::minutes(1);
    const auto again = [self = shared_from_this(), pause] {
        const auto ec = self->remove();
        if (!ec || ec == errc::lost) {
            self->turn_.pass_on();
            return;
        }
        if (pause > longest) self->abandon();
        self->try_again_after(std::min(2 * pause, 2 * longest));
    };
    const auto on_pool = [self = shared_from_this(), again] {
        try {
            pool::instance().submit("release " + self->path(), again);
        } catch (const std::system_error&) {
            self->abandon();
        }
    };
    try {
        alarm::instance().at(os::this_world().now() + pause, on_pool);
    } catch (const std::system_error&) {
        abandon();  // no thread is to be had
    }
}

void held_lock::abandon() noexcept {
    on_disk_.abandon(os::this_world());
    turn_.pass_on();
}

void held_lock::let_go() noexcept {
    end_loss_waits();
    if (!slow() || inherited()) {
        (void)release();
        return;
    }
    home_->end_work(*this);  // what hangs must not keep the context
    try {
        pool::instance().submit_before_exit(lane(), [self = shared_from_this()] { (void)self->release(); });
    } catch (...) {
        (void)release();  // no thread to be had
    }
}

}  // namespace fslock::engine
