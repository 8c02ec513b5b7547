#include "pool.hpp"

#include <atomic>
#include <cstdlib>
#include <thread>

#include "../os/per_process.hpp"

namespace fslock::engine {
namespace {

constexpr auto idle_time = std::chrono::seconds(10);
constexpr auto longest_exit = std::chrono::seconds(5);

constinit os::per_process<pool> pools;
thread_local bool works_for_a_pool = false;

}  // namespace

pool& pool::instance() { return pools.get(); }

void pool::submit(const std::string& name, std::function<void()> job) {
    const std::lock_guard lock(mutex_);
    auto& l = lanes_[name];
    l.jobs.push_back(std::move(job));
    if (l.running || l.jobs.size() > 1) return;
    ready_.push_back(name);
    if (idle_ >= ready_.size()) {
        wake_.notify_one();
        return;
    }
    try {
        std::thread([this] { work(); }).detach();
        ++threads_;
    } catch (...) {
        if (threads_ != 0) return;  // a busy thread will come to it
        ready_.pop_back();
        lanes_.erase(name);
        throw;
    }
}

void pool::submit_before_exit(const std::string& name, std::function<void()> job) {
    one_needed_more();
    try {
        submit(name, [this, job = std::move(job)]() mutable {
            job();
            job = nullptr;
            one_needed_less();
        });
    } catch (...) {
        one_needed_less();
        throw;
    }
    wait_if_exiting();
}

pool::need pool::needed() {
    one_needed_more();
    return need(this);
}

void pool::wait_if_exiting() {
    if (works_for_a_pool) return;
    std::unique_lock lock(mutex_);
    if (exit_until_) wait_before_exit(lock);
}

void pool::one_needed_more() {
    // No initialisation of a static: at a fork another thread may be in it.
    static std::atomic<bool> told_of_exit{false};
    if (!told_of_exit.exchange(true)) (void)std::atexit([] { instance().exit_begins(); });
    const std::lock_guard lock(mutex_);
    ++needed_;
}

void pool::one_needed_less() noexcept {
    const std::lock_guard lock(mutex_);
    if (--needed_ == 0) none_needed_.notify_all();
}

void pool::exit_begins() {
    std::unique_lock lock(mutex_);
    exit_until_ = std::chrono::steady_clock::now() + longest_exit;
    wait_before_exit(lock);
}

void pool::wait_before_exit(std::unique_lock<std::mutex>& lock) {
    (void)none_needed_.wait_until(lock, *exit_until_, [this] { return needed_ == 0; });
}

bool pool::next(std::unique_lock<std::mutex>& lock, std::string& name, std::function<void()>& job) {
    ++idle_;
    const bool found = wake_.wait_for(lock, idle_time, [this] { return !ready_.empty(); });
    --idle_;
    if (!found) return false;
    name = std::move(ready_.front());
    ready_.pop_front();
    auto& l = lanes_[name];
    l.running = true;
    job = std::move(l.jobs.front());
    l.jobs.pop_front();
    return true;
}

void pool::work() {
    works_for_a_pool = true;
    std::unique_lock lock(mutex_);
    std::string name;
    std::function<void()> job;
    while (next(lock, name, job)) {
        lock.unlock();
        job();
        job = nullptr;
        lock.lock();
        auto& l = lanes_[name];
        l.running = false;
        if (l.jobs.empty()) {
            lanes_.erase(name);
        } else {
            ready_.push_back(name);
        }
    }
    --threads_;
}

}  // namespace fslock::engine
