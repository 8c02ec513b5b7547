#include "alarm.hpp"

#include <algorithm>
#include <thread>

#include "../os/posix_world.hpp"

namespace fslock::engine {
namespace {

constexpr auto idle_time = std::chrono::seconds(10);
/// How late a resume from suspension may be noticed.
constexpr auto longest_wait = std::chrono::seconds(1);

constinit os::per_process<alarm> alarms;

}  // namespace

alarm& alarm::instance() { return alarms.get(); }

void alarm::at(steady when, std::function<void()> call) {
    const std::lock_guard lock(mutex_);
    if (!has_thread_) {
        suspended_ = os::this_world().suspended();
        std::thread([this] { work(); }).detach();
        has_thread_ = true;
    }
    entries_.push_back({when, std::move(call)});
    std::push_heap(entries_.begin(), entries_.end(), later);
    if (when < waits_until_) changed_.notify_one();
}

std::size_t alarm::pending() {
    const std::lock_guard lock(mutex_);
    return entries_.size();
}

bool alarm::next(std::unique_lock<std::mutex>& lock, std::function<void()>& call) {
    auto& w = os::this_world();
    auto idle_until = w.now() + idle_time;
    for (;;) {
        const auto now = w.now();
        if (entries_.empty() && now >= idle_until) return false;
        const auto suspended = w.suspended();
        if (suspended - suspended_ > longest_wait) {
            for (auto& e : entries_) e.when = now;
        }
        suspended_ = std::max(suspended, suspended_);
        if (!entries_.empty() && entries_.front().when <= now) break;
        // A copy: while this waits the entries may move.
        const steady next_due = entries_.empty() ? idle_until : entries_.front().when;
        const steady until = waits_until_ = std::min(next_due, now + longest_wait);
        changed_.wait_until(lock, until);
        waits_until_ = {};
    }
    std::pop_heap(entries_.begin(), entries_.end(), later);
    call = std::move(entries_.back().call);
    entries_.pop_back();
    return true;
}

void alarm::work() {
    std::unique_lock lock(mutex_);
    std::function<void()> call;
    while (next(lock, call)) {
        lock.unlock();
        call();
        call = nullptr;
        lock.lock();
    }
    has_thread_ = false;
}

}  // namespace fslock::engine
