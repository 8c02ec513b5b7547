#include "event_sink.hpp"

#include "registry.hpp"

namespace fslock::engine {

void event_sink::push(event e) {
    {
        const std::lock_guard lock(mutex_);
        if (closed_) return;
        waiting_.push_back(std::move(e));
        if (std::exchange(delivering_, true)) return;
    }
    post_delivery();
}

void event_sink::post_delivery() {
    if (const auto home = home_.lock()) home->post_delivery(shared_from_this());
}

void event_sink::deliver() noexcept {
    std::unique_lock lock(mutex_);
    if (closed_) return;
    const auto e = std::move(waiting_.front());
    waiting_.pop_front();
    const auto told = told_;
    lock.unlock();
    (*told)(e);
    lock.lock();
    delivering_ = !waiting_.empty();
    const bool more = delivering_;
    lock.unlock();
    if (more) post_delivery();
}

void event_sink::close() {
    std::shared_ptr<const std::function<void(const event&)>> told;
    asio::any_io_executor executor;
    std::deque<event> waiting;
    const std::lock_guard lock(mutex_);
    closed_ = true;
    told.swap(told_);
    executor.swap(executor_);
    waiting.swap(waiting_);
}

}  // namespace fslock::engine
