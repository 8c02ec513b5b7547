#include "held_lock.hpp"

#include <thread>

#include "../core/contend.hpp"
#include "../os/posix_world.hpp"
#include "fslock/error.hpp"
#include "pool.hpp"
#include "registry.hpp"

namespace fslock::engine {
namespace {

/// For a release, which has no event loop to wait on. It waits only for the settling of a token.
class blocking_sleeper final : public core::sleeper {
 public:
    os::call<core::wake> sleep(core::steady until) override {
        std::this_thread::sleep_until(until);
        return core::wake::due;
    }
    os::call<core::wake> wait_for_change(core::steady until, const os::file_facts&) override {
        return sleep(until);
    }
};

}  // namespace

held_lock::held_lock(std::shared_ptr<registry> home, turn mine, core::holder on_disk, options o,
                     optional_reporter told)
    : due_item(due_kind::beat),
      home_(std::move(home)),
      turn_(std::move(mine)),
      opts_(std::move(o)),
      told_(std::move(told)),
      generation_(os::fork_generation()),
      on_disk_(std::move(on_disk)) {}

held_lock::~held_lock() { home_->unhold(*this); }

bool held_lock::inherited() const noexcept { return generation_ != os::fork_generation(); }

void held_lock::report(event_kind kind, std::error_code error, std::uint64_t count) {
    if (!told_.sink()) return;
    auto& w = os::this_world();
    event e;
    e.kind = kind;
    e.path = path();
    e.owner = core::describe(rec(), w.self());
    e.age = std::chrono::duration_cast<std::chrono::milliseconds>(w.now() - on_disk_.last_beat());
    e.error = error;
    e.count = count;
    told_.report(std::move(e));
}

/// REQUIRES: the disk mutex. Says whether the lock is ours.
bool held_lock::note(const core::standing_outcome& out) {
    switch (out.now) {
        case core::standing::ours:
            if (failures_ != 0) report(event_kind::beat_recovered, {}, failures_);
            failures_ = 0;
            said_at_risk_ = false;
            return true;
        case core::standing::lost:
            if (!lost_.exchange(true)) report(event_kind::lost, make_error_code(errc::lost));
            return false;
        case core::standing::unsure: break;
    }
    if (++failures_ == 1) report(event_kind::beat_failed, out.error, failures_);
    const bool late = os::this_world().now() - on_disk_.last_beat() > 3 * opts_.heartbeat_interval;
    if (late && !std::exchange(said_at_risk_, true)) report(event_kind::at_risk, out.error, failures_);
    return false;
}

void held_lock::beat() {
    const std::lock_guard lock(on_disk_mutex_);
    if (released_ || lost_ || inherited()) return;
    (void)note(core::run_to_end(on_disk_.beat(os::this_world())));
}

bool held_lock::verify(error_code& ec) {
    ec = {};
    if (inherited()) return false;
    const std::lock_guard lock(on_disk_mutex_);
    if (released_ || lost_) return false;
    const auto out = core::run_to_end(on_disk_.verify(os::this_world()));
    if (out.now == core::standing::unsure) ec = out.error;
    if (out.now == core::standing::lost) (void)note(out);
    return out.now == core::standing::ours;
}

error_code held_lock::remove() noexcept {
    const std::lock_guard lock(on_disk_mutex_);
    blocking_sleeper sleeper;
    optional_reporter nobody({});
    core::contender c(os::this_world(), on_disk_.where(), opts_, sleeper, nobody, entry().seen);
    return core::run_to_end(on_disk_.release(c));
}

error_code held_lock::release() noexcept {
    if (inherited() || released_.exchange(true)) return {};
    home_->unhold(*this);
    const auto ec = remove();
    if (ec && ec != errc::lost && !on_disk_.guarded()) {
        keep_trying();
    } else {
        turn_.pass_on();
    }
    return ec;
}

/// A record without a witness that could not be removed looks alive for as long as this process lives. The turn
/// stays here meanwhile: we are still the owner.
void held_lock::keep_trying() noexcept {
    const auto job = [self = shared_from_this()] {
        auto pause = std::chrono::milliseconds(100);
        for (int tries = 0; tries < 10; ++tries, pause *= 2) {
            std::this_thread::sleep_for(pause);
            const auto ec = self->remove();
            if (!ec || ec == errc::lost) break;
        }
        self->turn_.pass_on();
    };
    try {
        pool::instance().submit("release " + path().native(), job);
    } catch (...) {
        turn_.pass_on();  // no thread to be had
    }
}

void held_lock::let_go() noexcept {
    if (!slow() || inherited()) {
        (void)release();
        return;
    }
    try {
        pool::instance().submit(lane(), [self = shared_from_this()] { (void)self->release(); });
    } catch (...) {
        (void)release();  // no thread to be had
    }
}

}  // namespace fslock::engine
