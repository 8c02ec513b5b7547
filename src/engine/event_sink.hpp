// Reports on their way to the user.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>

#include "../core/contender.hpp"
#include "fslock/detail/asio.hpp"
#include "fslock/event.hpp"

namespace fslock::engine {

class registry;

/// Calls one `on_event`, on one executor, in order and never two at a time.
class event_sink : public std::enable_shared_from_this<event_sink> {
 public:
    event_sink(std::weak_ptr<registry> home, asio::any_io_executor executor,
               std::function<void(const event&)> told)
        : home_(std::move(home)),
          executor_(std::move(executor)),
          told_(std::make_shared<const std::function<void(const event&)>>(std::move(told))) {}

    void push(event e);
    /// The next report; by the registry, on the executor.
    void deliver() noexcept;
    /// Unchanged until `close`, which comes after the registry stopped posting.
    [[nodiscard]] const asio::any_io_executor& executor() const noexcept { return executor_; }
    /// Lets go of the executor and of the user's function; later reports are dropped.
    void close();

 private:
    void post_delivery();

    const std::weak_ptr<registry> home_;
    std::mutex mutex_;
    asio::any_io_executor executor_;
    std::shared_ptr<const std::function<void(const event&)>> told_;
    std::deque<event> waiting_;
    bool delivering_ = false;
    bool closed_ = false;
};

/// For those who may have nobody to tell.
class optional_reporter final : public core::reporter {
 public:
    explicit optional_reporter(std::shared_ptr<event_sink> sink) noexcept : sink_(std::move(sink)) {}
    void report(event e) override {
        if (sink_) sink_->push(std::move(e));
    }
    [[nodiscard]] const std::shared_ptr<event_sink>& sink() const noexcept { return sink_; }

 private:
    std::shared_ptr<event_sink> sink_;
};

}  // namespace fslock::engine
