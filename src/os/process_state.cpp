#include "process_state.hpp"

#include <pthread.h>
#include <unistd.h>

#include "system.hpp"

namespace fslock::os {

process_state& process_state::instance() {
    static auto* const state = new process_state;  // never destroyed: locks may be released at any late moment
    return *state;
}

process_state::process_state() {
    (void)::pthread_atfork([] { instance().mutex_.lock(); }, [] { instance().mutex_.unlock(); },
                           [] { instance().become_child(); });
}

void process_state::become_child() noexcept {
    for (std::size_t fd = 0; fd < noted_.size(); ++fd)
        if (noted_[fd]) (void)::close(static_cast<int>(fd));
    noted_.assign(noted_.size(), false);
    count_ = 0;
    epochs_.clear();
    self_ = nullptr;
    ++generation_;
    mutex_.unlock();
}

void process_state::note(int fd) {
    const auto index = static_cast<std::size_t>(fd);
    if (index >= noted_.size()) noted_.resize(index + 64);
    noted_[index] = true;
    ++count_;
}

void process_state::close(int fd, unsigned generation) noexcept {
    std::unique_lock lock(mutex_);
    if (generation != generation_) return;  // closed when this child began; the number may be somebody else's by now
    const auto index = static_cast<std::size_t>(fd);
    if (index < noted_.size() && noted_[index]) {
        noted_[index] = false;
        --count_;
    } else {
        lock.unlock();  // on a shared filesystem: closing may hang
    }
    (void)::close(fd);
}

std::size_t process_state::open_descriptors() {
    const std::lock_guard lock(mutex_);
    return count_;
}

void process_state::remember_epoch(std::int64_t stamp) {
    const std::lock_guard lock(mutex_);
    if (spare_epoch_) {
        spare_epoch_.value() = stamp;
        spare_epoch_ = epochs_.insert(std::move(spare_epoch_)).node;
    } else {
        epochs_.insert(stamp);
    }
}

void process_state::forget_epoch(std::int64_t stamp) {
    const std::lock_guard lock(mutex_);
    if (const auto at = epochs_.find(stamp); at != epochs_.end()) spare_epoch_ = epochs_.extract(at);
}

bool process_state::knows_epoch(std::int64_t stamp) {
    const std::lock_guard lock(mutex_);
    return epochs_.contains(stamp);
}

const identity& process_state::self() {
    if (const auto* known = self_.load(std::memory_order_acquire)) return *known;
    const std::lock_guard lock(mutex_);
    if (self_.load(std::memory_order_relaxed) == nullptr)
        self_.store(new identity(system::read_identity()), std::memory_order_release);
    return *self_.load(std::memory_order_relaxed);
}

}  // namespace fslock::os
