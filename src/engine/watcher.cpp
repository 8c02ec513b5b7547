#include "watcher.hpp"

#include <utility>

namespace fslock::engine {

using asio::posix::stream_descriptor;

watcher::process::~process() {
    if (parked >= 0) os::close_descriptor(parked);
}

std::error_code watcher::refusal() const {
    if (closed_) return error_code(asio::error::operation_aborted);
    if (forking_) return error_code(asio::error::try_again);
    return {};
}

std::error_code watcher::adopt(std::optional<stream_descriptor>& into, int fd) {
    try {
        into.emplace(executor_, fd);
    } catch (const system_error& e) {
        os::close_descriptor(fd);
        return e.code();
    }
    return {};
}

std::error_code watcher::open() {
    if (const auto ec = refusal()) return ec;
    if (queue_) return {};
    const auto fd = os::open_changes();
    if (!fd) return fd.error();
    return adopt(queue_, *fd);
}

os::result<int> watcher::watch_record(const item& who, const std::string& path) {
    const std::lock_guard lock(mutex_);
    if (const auto ec = open()) return ec;
    const auto id = os::watch(queue_->native_handle(), path, os::watched::record);
    if (id) listeners_.emplace(*id, listener{who.get(), who});
    count();
    return id;
}

void watcher::unwatch_record(int id, const due_item& who) noexcept {
    const std::lock_guard lock(mutex_);
    auto [at, end] = listeners_.equal_range(id);
    while (at != end && at->second.name != &who) ++at;
    if (at == end) return;  // the file is gone, and the watch with it
    listeners_.erase(at);
    if (queue_ && !listeners_.contains(id)) os::unwatch(queue_->native_handle(), id);
    count();
}

os::result<int> watcher::watch_directory(const std::string& path) {
    const std::lock_guard lock(mutex_);
    if (const auto ec = open()) return ec;
    const auto id = os::watch(queue_->native_handle(), path, os::watched::directory);
    if (id) ++directories_[*id];
    count();
    return id;
}

void watcher::unwatch_directory(int id) noexcept {
    const std::lock_guard lock(mutex_);
    const auto at = directories_.find(id);
    if (at == directories_.end() || --at->second != 0) return;
    directories_.erase(at);
    if (queue_) os::unwatch(queue_->native_handle(), id);
    count();
}

void watcher::wait_for_end(process& p) {
    p.descriptor->async_wait(stream_descriptor::wait_read, [ended = p.ended](error_code ec) {
        if (!ec) ended();
    });
}

std::error_code watcher::watch_process(const due_item& who, int pid, std::function<void()> ended) {
    const std::lock_guard lock(mutex_);
    if (const auto ec = refusal()) return ec;
    const auto fd = os::open_process(pid);
    if (!fd) return fd.error();
    auto& p = processes_[&who];
    if (const auto ec = adopt(p.descriptor, *fd)) {
        processes_.erase(&who);
        return ec;
    }
    p.ended = std::move(ended);
    wait_for_end(p);
    return {};
}

void watcher::unwatch_process(const due_item& who) noexcept {
    const std::lock_guard lock(mutex_);
    processes_.erase(&who);
}

bool watcher::needs_settling() const noexcept {
    const auto now = state_.load();
    return wanted_ ? now == state::idle : now == state::reading;
}

void watcher::settle(const std::function<void(error_code)>& readable) {
    const std::lock_guard lock(mutex_);
    if (!queue_ || !needs_settling()) return;
    if (wanted_) {
        state_ = state::reading;
        queue_->async_wait(stream_descriptor::wait_read, readable);
    } else {
        state_ = state::cancelling;
        error_code ignored;
        queue_->cancel(ignored);
    }
}

watcher::heard watcher::read() {
    heard all;
    const std::lock_guard lock(mutex_);
    state_ = state::idle;
    if (!queue_) return all;
    const auto news = os::read_changes(queue_->native_handle());
    all.everybody = news.overflow;
    for (const auto& change : news.changes) {
        if (directories_.contains(change.id)) all.everybody = true;
        const auto [begin, end] = listeners_.equal_range(change.id);
        for (auto at = begin; at != end; ++at)
            if (auto who = at->second.who.lock()) all.whom.push_back(std::move(who));
        if (!change.ended) continue;
        listeners_.erase(begin, end);
        directories_.erase(change.id);
    }
    count();
    return all;
}

void watcher::before_fork() noexcept {
    const std::lock_guard lock(mutex_);
    forking_ = true;
    if (queue_) parked_queue_ = queue_->release();
    queue_.reset();
    for (auto& [who, p] : processes_) {
        if (!p.descriptor) continue;
        p.parked = p.descriptor->release();
        p.descriptor.reset();
    }
}

void watcher::after_fork_in_parent() {
    const std::lock_guard lock(mutex_);
    forking_ = false;
    // Without its descriptor a watch tells nothing, and whoever has it polls.
    if (parked_queue_ >= 0) (void)adopt(queue_, std::exchange(parked_queue_, -1));
    for (auto& [who, p] : processes_)
        if (p.parked >= 0 && !adopt(p.descriptor, std::exchange(p.parked, -1))) wait_for_end(p);
}

void watcher::after_fork_in_child() noexcept {
    if (parked_queue_ >= 0) os::close_descriptor(parked_queue_);
    for (auto& [who, p] : processes_)
        if (p.parked >= 0) os::close_descriptor(std::exchange(p.parked, -1));
}

void watcher::close() noexcept {
    std::unordered_map<const due_item*, process> processes;
    const std::lock_guard lock(mutex_);
    closed_ = true;
    queue_.reset();
    listeners_.clear();
    directories_.clear();
    processes.swap(processes_);
    wanted_ = false;
    processes.clear();
    executor_ = asio::any_io_executor();
}

}  // namespace fslock::engine
