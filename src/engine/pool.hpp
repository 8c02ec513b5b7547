// Threads for calls that may hang.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

namespace fslock::engine {

/// Runs jobs on threads of its own, made on demand and ended after a while without work. Jobs of one lane run one
/// after the other, so that a filesystem that hangs takes one thread and no more. Never joined: a job that hangs must
/// not keep the program from ending, so a job owns all that it touches.
class pool {
 public:
    /// Of this process; a forked child has one of its own.
    static pool& instance();

    /// Throws `std::system_error` when no thread can be made and none is there.
    void submit(const std::string& lane, std::function<void()> job);
    /// The same for what others wait for: a program that ends waits for it, but no longer than 5 s for all together.
    void submit_before_exit(const std::string& lane, std::function<void()> job);

    struct one_less {
        void operator()(pool* p) const noexcept { p->one_needed_less(); }
    };
    /// While it lives a program that ends waits, as for a job that was submitted for that.
    using need = std::unique_ptr<pool, one_less>;
    [[nodiscard]] need needed();
    /// Waits for all that is needed if the program ends already, since the wait at its exit may be over. Does nothing on
    /// a thread of a pool, which is to work meanwhile.
    void wait_if_exiting();

 private:
    struct lane {
        std::deque<std::function<void()>> jobs;
        bool running = false;
    };

    void work();
    bool next(std::unique_lock<std::mutex>& lock, std::string& name, std::function<void()>& job);
    void one_needed_more();
    void one_needed_less() noexcept;
    void exit_begins();
    void wait_before_exit(std::unique_lock<std::mutex>& lock);

    std::mutex mutex_;
    std::condition_variable wake_;
    std::unordered_map<std::string, lane> lanes_;
    std::deque<std::string> ready_;  ///< lanes with a job and no thread
    std::size_t idle_ = 0;
    std::size_t threads_ = 0;
    std::size_t needed_ = 0;  ///< what the end of the program waits for
    std::condition_variable none_needed_;
    std::optional<std::chrono::steady_clock::time_point> exit_until_;  ///< since the program ends
};

}  // namespace fslock::engine
