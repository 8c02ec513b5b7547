// What fslock keeps once per process, and what a fork does to it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_set>
#include <vector>

#include "world.hpp"

namespace fslock::os {

/// Descriptors of records, the epochs that are ours, and who we are.
///
/// Every descriptor that may ever be locked is opened and noted in one critical section, which fork waits for (files
/// on shared filesystems are never locked, and opening one may hang: they are not noted): the
/// child closes them all, because a kernel lock lives for as long as any copy of its descriptor, and a child that
/// only sleeps would keep its dead parent's locks alive. `_Fork`, `vfork` and raw `clone` run no handlers
/// (fork(2), pthread_atfork(3)): they are not covered.
class process_state {
 public:
    static process_state& instance();

    /// Notes what `open` returns, if it is a descriptor.
    template <class Open>
    int open(Open open) {
        const std::lock_guard lock(mutex_);
        const int fd = open();
        if (fd >= 0) note(fd);
        return fd;
    }
    /// Closes what was opened in this generation, noted or not.
    void close(int fd, unsigned generation) noexcept;
    [[nodiscard]] std::size_t open_descriptors();

    void remember_epoch(std::int64_t stamp);
    void forget_epoch(std::int64_t stamp);
    [[nodiscard]] bool knows_epoch(std::int64_t stamp);

    [[nodiscard]] const identity& self();

    /// Grows in every child of a fork. What was made under another number belongs to the parent.
    [[nodiscard]] unsigned generation() const noexcept { return generation_; }

 private:
    process_state();
    void note(int fd);
    void become_child() noexcept;

    std::mutex mutex_;
    std::vector<bool> noted_;
    std::size_t count_ = 0;
    std::unordered_set<std::int64_t> epochs_;  ///< by their stamps, which are unique in this process
    decltype(epochs_)::node_type spare_epoch_;  ///< for the next one
    std::atomic<const identity*> self_{nullptr};  // never freed: references to it may be anywhere
    std::atomic<unsigned> generation_{0};
};

}  // namespace fslock::os
