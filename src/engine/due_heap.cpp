#include "due_heap.hpp"

namespace fslock::engine {

void due_heap::place(std::size_t at, entry e) noexcept {
    entries_[at] = e;
    e.item->index_ = at;
}

void due_heap::up(std::size_t at) noexcept {
    const auto rising = entries_[at];
    while (at > 0) {
        const auto parent = (at - 1) / 2;
        if (entries_[parent].due <= rising.due) break;
        place(at, entries_[parent]);
        at = parent;
    }
    place(at, rising);
}

void due_heap::down(std::size_t at) noexcept {
    const auto sinking = entries_[at];
    for (;;) {
        auto child = 2 * at + 1;
        if (child >= entries_.size()) break;
        if (child + 1 < entries_.size() && entries_[child + 1].due < entries_[child].due) ++child;
        if (sinking.due <= entries_[child].due) break;
        place(at, entries_[child]);
        at = child;
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
