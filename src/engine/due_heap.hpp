// What is due when: a heap whose items know their place, so that any of them can be taken out.
#pragma once

#include <chrono>
#include <cstddef>
#include <vector>

namespace fslock::engine {

using steady = std::chrono::steady_clock::time_point;

class due_heap;

enum class due_kind : unsigned char {
    beat,  ///< a `held_lock`
    wait   ///< an `operation`
};

/// Something with a due time, in one heap at most.
class due_item {
 public:
    [[nodiscard]] due_kind kind() const noexcept { return kind_; }
    [[nodiscard]] bool scheduled() const noexcept { return heap_ != nullptr; }
    /// Does nothing for an item that is in no heap.
    void unschedule() noexcept;

 protected:
    explicit due_item(due_kind kind) noexcept : kind_(kind) {}
    due_item(const due_item&) = delete;
    due_item& operator=(const due_item&) = delete;
    ~due_item() = default;

 private:
    friend class due_heap;
    const due_kind kind_;
    due_heap* heap_ = nullptr;
    std::size_t index_ = 0;
};

/// Does not own its items; an item must be taken out before it dies. The times are in the heap itself: with thousands of
/// items each comparison would otherwise miss the cache.
class due_heap {
 public:
    struct entry {
        steady due;
        due_item* item;
    };
    [[nodiscard]] bool empty() const noexcept { return entries_.empty(); }
    [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
    [[nodiscard]] const entry& first() const noexcept { return entries_.front(); }
    [[nodiscard]] steady earliest() const noexcept { return first().due; }
    [[nodiscard]] const std::vector<entry>& entries() const noexcept { return entries_; }

    /// Puts `item` in, or moves it to its new time, also from another heap.
    void schedule(due_item& item, steady due);
    void clear() noexcept;

 private:
    friend class due_item;
    void remove(due_item& item) noexcept;
    void place(std::size_t at, entry e) noexcept;
    void up(std::size_t at) noexcept;
    void down(std::size_t at) noexcept;

    std::vector<entry> entries_;
};

}  // namespace fslock::engine
