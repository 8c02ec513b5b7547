#include "due_heap.hpp"

#include <algorithm>

namespace fslock::engine {
namespace {

/// Each move from one level to the next touches an item somewhere in memory: few levels.
constexpr std::size_t children = 4;

}  // namespace

void due_heap::place(std::size_t at, entry e) noexcept {
    entries_[at] = e;
    e.item->index_ = at;
}

void due_heap::up(std::size_t at) noexcept {
    const auto rising = entries_[at];
    while (at > 0) {
        const auto parent = (at - 1) / children;
        if (entries_[parent].due <= rising.due) break;
        place(at, entries_[parent]);
        at = parent;
    }
    place(at, rising);
}

void due_heap::down(std::size_t at) noexcept {
    const auto sinking = entries_[at];
    const auto earlier = [](const entry& a, const entry& b) { return a.due < b.due; };
    for (auto first = children * at + 1; first < entries_.size(); first = children * at + 1) {
        const auto begin = entries_.begin() + static_cast<std::ptrdiff_t>(first);
        const auto end = begin + static_cast<std::ptrdiff_t>(std::min(children, entries_.size() - first));
        const auto child = std::min_element(begin, end, earlier);
        if (sinking.due <= child->due) break;
        place(at, *child);
        at = static_cast<std::size_t>(child - entries_.begin());
    }
    place(at, sinking);
}

void due_item::unschedule() noexcept {
    if (heap_ != nullptr) heap_->remove(*this);
}

void due_heap::schedule(due_item& item, steady due) {
    if (item.heap_ == this) {
        entries_[item.index_].due = due;
    } else {
        entries_.push_back({due, &item});
        item.unschedule();
        item.heap_ = this;
        item.index_ = entries_.size() - 1;
    }
    up(item.index_);
    down(item.index_);
}

void due_heap::remove(due_item& item) noexcept {
    item.heap_ = nullptr;
    const auto at = item.index_;
    const auto last = entries_.back();
    entries_.pop_back();
    if (last.item == &item) return;
    place(at, last);
    up(at);
    down(last.item->index_);
}

void due_heap::clear() noexcept {
    for (auto& e : entries_) e.item->heap_ = nullptr;
    entries_.clear();
}

}  // namespace fslock::engine
