#include "operation.hpp"

#include "../os/posix_world.hpp"
#include "registry.hpp"

namespace fslock::engine {

operation::operation(std::shared_ptr<registry> r, core::place where, options o, std::optional<steady> deadline,
                     optional_reporter told)
    : due_item(due_kind::wait),
      home(std::move(r)),
      where_(std::move(where)),
      opts_(std::move(o)),
      deadline_(deadline),
      told_(std::move(told)) {}

void operation::prepare(turn t, core::prepared prepared, bool claimed) {
    mine = std::move(t);
    contender_ = std::make_unique<core::contender>(os::this_world(), where_, opts_, static_cast<core::sleeper&>(*this),
                                                   static_cast<core::reporter&>(told_), mine.entry().sightings());
    contender_->mine = std::move(prepared);
    contender_->deadline = deadline_;
    claimed_ = claimed;
}

void operation::resume(core::wake woken) {
    if (!task_) {
        task_ = core::contend(*contender_, claimed_);
        task_.resume();
        return;
    }
    *woken_ = woken;
    suspended_.resume();
}

core::contend_outcome operation::outcome() noexcept {
    core::contend_outcome out;
    try {
        out = task_.result();
    } catch (const std::system_error& e) {
        out.error = e.code();
    } catch (...) {
        out.error = std::make_error_code(std::errc::not_enough_memory);
    }
    return out;
}

core::holder operation::take_holder() {
    return {where_, std::move(contender_->mine), contender_->world.now()};
}

std::string operation::lane() const {
    return where_.where ? where_.where->lane() : std::string(where_.lock.directory());
}

void operation::suspended(std::coroutine_handle<> waiting, void* slot) {
    suspended_ = waiting;
    woken_ = static_cast<core::wake*>(slot);
}

os::call<core::wake> operation::sleep(core::steady until) {
    if (cancelled) return core::wake::cancelled;
    wake_at_ = until;
    const bool to_the_end = deadline_ && until >= *deadline_;
    wait_length_ = to_the_end ? steady::duration() : until - os::this_world().now();
    listens_ = false;
    return os::call<core::wake>(static_cast<os::suspension&>(*this));
}

os::call<core::wake> operation::wait_for_change(core::steady until) {
    auto pending = sleep(until);
    listens_ = true;
    return pending;
}

os::result<core::watching> operation::watch_record(const std::string& path, const os::file_facts& seen) {
    if (record_watch_ && watched_.same_inode(seen)) return core::watching::still;
    home->unwatch(*this, std::exchange(record_watch_, std::nullopt), false);
    const auto id = home->watch_record(*this, path);
    if (!id) return id.error();
    record_watch_ = *id;
    watched_ = seen;
    return core::watching::anew;
}

os::result<core::watching> operation::watch_process(int pid) {
    if (watched_process_ == pid) return core::watching::still;
    home->unwatch(*this, std::nullopt, watched_process_ != 0);
    watched_process_ = 0;
    if (const auto ec = home->watch_process(*this, pid)) return ec;
    watched_process_ = pid;
    return core::watching::anew;
}

bool operation::has_left_over() const noexcept {
    return record_watch_ || watched_process_ != 0 || (contender_ && contender_->looked_at.file);
}

void operation::clean_up() noexcept {
    contender_.reset();
    const auto record = std::exchange(record_watch_, std::nullopt);
    const bool process = std::exchange(watched_process_, 0) != 0;
    if (record || process) home->unwatch(*this, record, process);
}

}  // namespace fslock::engine
