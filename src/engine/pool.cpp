#include "pool.hpp"

#include <thread>

#include "../os/per_process.hpp"

namespace fslock::engine {
namespace {

constexpr auto idle_time = std::chrono::seconds(10);

constinit os::per_process<pool> pools;

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
