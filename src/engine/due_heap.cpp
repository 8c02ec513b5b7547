#include "due_heap.hpp"

#include <utility>

namespace fslock::engine {

void due_heap::place(std::size_t at, due_item* item) noexcept {
    items_[at] = item;
    item->index_ = at;
}

void due_heap::up(std::size_t at) noexcept {
    due_item* const item = items_[at];
    while (at > 0) {
        const auto parent = (at - 1) / 2;
        if (items_[parent]->due_ <= item->due_) break;
        place(at, items_[parent]);
        at = parent;
    }
    place(at, item);
}

void due_heap::down(std::size_t at) noexcept {
    due_item* const item = items_[at];
    for (;;) {
        auto child = 2 * at + 1;
        if (child >= items_.size()) break;
        if (child + 1 < items_.size() && items_[child + 1]->due_ < items_[child]->due_) ++child;
        if (item->due_ <= items_[child]->due_) break;
        place(at, items_[child]);
        at = child;
    }
    place(at, item);
}

void due_item::unschedule() noexcept {
    if (heap_ != nullptr) heap_->remove(*this);
}

void due_heap::schedule(due_item& item, steady due) {
    if (item.heap_ != this) {
        items_.reserve(items_.size() + 1);
        item.unschedule();
        items_.push_back(&item);
        item.heap_ = this;
        item.index_ = items_.size() - 1;
    }
    item.due_ = due;
    up(item.index_);
    down(item.index_);
}

void due_heap::remove(due_item& item) noexcept {
    item.heap_ = nullptr;
    const auto at = item.index_;
    due_item* const last = items_.back();
    items_.pop_back();
    if (last == &item) return;
    place(at, last);
    up(at);
    down(last->index_);
}

due_item* due_heap::pop_due(steady now) noexcept {
    if (items_.empty() || earliest() > now) return nullptr;
    due_item* const first = items_.front();
    remove(*first);
    return first;
}

void due_heap::clear() noexcept {
    for (auto* item : items_) item->heap_ = nullptr;
    items_.clear();
}

}  // namespace fslock::engine
