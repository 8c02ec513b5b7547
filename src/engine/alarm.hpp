// Time without an event loop.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <vector>

#include "due_heap.hpp"

namespace fslock::engine {

/// Calls functions at their times, on one thread of its own, made on demand and ended after a while without work.
/// Never joined, like those of the pool. What it calls must not block: it hands work to the pool.
///
/// When the machine was suspended everything is called at once: who was timed by a clock that stood still has to look
/// how late it is.
class alarm {
 public:
    /// Of this process; a forked child has one of its own.
    static alarm& instance();

    /// Throws `std::system_error` when no thread can be made and none is there.
    void at(steady when, std::function<void()> call);
    /// How many calls are still to come.
    [[nodiscard]] std::size_t pending();

 private:
    struct entry {
        steady when;
        std::function<void()> call;
    };
    static bool later(const entry& a, const entry& b) noexcept { return a.when > b.when; }

    void work();
    /// Waits for the next that is due; false: there was nothing for a while.
    bool next(std::unique_lock<std::mutex>& lock, std::function<void()>& call);

    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<entry> entries_;  ///< a heap, the earliest first
    bool has_thread_ = false;
    steady waits_until_{};  ///< what comes before that has to wake the thread
    steady::duration suspended_{};  ///< so far, as last seen
};

}  // namespace fslock::engine
