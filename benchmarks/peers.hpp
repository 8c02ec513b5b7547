// What people would use instead.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace bench {

/// The locks of one contender that blocks its thread.
class blocking_peer {
 public:
    virtual ~blocking_peer() = default;
    /// Returns when the lock of the `k`th path is ours.
    virtual void take(std::size_t k) = 0;
    virtual void give(std::size_t k) = 0;
    /// The process that does it, where that is another one; else 0.
    [[nodiscard]] virtual pid_t helper() const { return 0; }
};

struct peer {
    std::string name;
    std::string missing = {};      ///< why it cannot be used here; empty: it can
    bool one_per_process = false;  ///< it does not keep the contenders of one process apart
    /// Absent: fslock itself, with coroutines.
    std::function<std::unique_ptr<blocking_peer>(const std::vector<std::filesystem::path>& paths)> make = {};
};

/// A peer of one object for each path, of a type with `Lock(path)`, `take()` and `give()`.
template <class Lock>
class with_each : public blocking_peer {
 public:
    explicit with_each(const std::vector<std::filesystem::path>& paths) {
        for (const auto& p : paths) locks_.push_back(std::make_unique<Lock>(p));
    }
    void take(std::size_t k) override { locks_[k]->take(); }
    void give(std::size_t k) override { locks_[k]->give(); }

    static std::unique_ptr<blocking_peer> make(const std::vector<std::filesystem::path>& paths) {
        return std::make_unique<with_each>(paths);
    }

 private:
    std::vector<std::unique_ptr<Lock>> locks_;
};

/// All of them, fslock first. Those that are not installed say so.
[[nodiscard]] const std::vector<peer>& all_peers();

}  // namespace bench
