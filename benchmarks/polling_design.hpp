// The design that fslock came from, for comparison only: a lock file with a record, looked at every 100 ms by
// the blocked thread of whoever waits, kept fresh by a thread of its own for as long as it is held, and synced
// twice.
#pragma once

#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>

namespace bench {

class polling_lock {
 public:
    explicit polling_lock(std::filesystem::path path) : path_(std::move(path)) {}
    polling_lock(const polling_lock&) = delete;
    polling_lock& operator=(const polling_lock&) = delete;
    ~polling_lock() { give(); }

    void take();
    void give();

 private:
    bool claim();
    bool removed_dead();
    void keep_fresh();
    [[nodiscard]] std::string record(std::int64_t heartbeat_ms) const;

    const std::filesystem::path path_;
    std::string epoch_;
    std::mutex mutex_;
    std::condition_variable ends_;
    bool held_ = false;
    std::thread heart_;
};

}  // namespace bench
