// The compiled half of fslock/acquire.hpp.
#include "fslock/acquire.hpp"

#include <condition_variable>
#include <mutex>
#include <thread>

#include "../os/per_process.hpp"
#include "registry.hpp"

#include FSLOCK_ASIO_HEADER(executor_work_guard.hpp)
#include FSLOCK_ASIO_HEADER(io_context.hpp)

namespace fslock {

#if defined(FSLOCK_USE_BOOST_ASIO)
const char detail::this_needs_the_library_fslock_boost = 0;
#else
const char detail::this_needs_the_library_fslock = 0;
#endif

namespace {

/// Where locks live that were acquired without an event loop: one thread, for the rest of the process.
class background_context {
 public:
    asio::any_io_executor executor() {
        std::call_once(running_, [this] { start(); });
        return context_.get_executor();
    }
    [[nodiscard]] bool runs_here() { return context_.get_executor().running_in_this_thread(); }

 private:
    void start() {
        try {
            std::thread([this] {
                const auto work = asio::make_work_guard(context_);
                context_.run();
            }).detach();
        } catch (const std::system_error& e) {  // no thread to be had
            throw system_error(detail::to_public(e.code()));
        }
    }

    asio::io_context context_{1};
    std::once_flag running_;
};

constinit os::per_process<background_context> background;

/// Wakes the thread that waits for it. On that thread's stack.
class blocking_completion final : public detail::completion<error_code, lock_guard> {
 public:
    void complete(error_code ec, lock_guard lock) noexcept override {
        const std::lock_guard guard(mutex_);
        error_ = ec;
        lock_ = std::move(lock);
        done_ = true;
        // Under the mutex: once it is free, this object may be gone.
        wake_.notify_one();
    }
    void destroy() noexcept override { complete(asio::error::operation_aborted, {}); }

    lock_guard wait(error_code& ec) {
        std::unique_lock guard(mutex_);
        wake_.wait(guard, [this] { return done_; });
        ec = error_;
        return std::move(lock_);
    }

 private:
    std::mutex mutex_;
    std::condition_variable wake_;
    bool done_ = false;
    error_code error_;
    lock_guard lock_;
};

lock_guard acquire_blocking(std::filesystem::path path, options o, detail::wait_limit limit, error_code& ec) {
    asio::any_io_executor io;
    try {
        if (background.get().runs_here()) {
            ec = detail::to_public(std::make_error_code(std::errc::resource_deadlock_would_occur));
            return {};
        }
        io = background.get().executor();
    } catch (const system_error& e) {  // no thread to be had, or no descriptor
        ec = e.code();
        return {};
    }
    auto first = detail::start_acquire(io, std::move(path), std::move(o), limit);
    ec = first.error;
    if (!first.waiting) return std::move(first.lock);
    blocking_completion done;
    detail::submit(std::move(first.waiting), detail::acquire_completion(&done));
    return done.wait(ec);
}

lock_guard or_throw(lock_guard lock, error_code ec, const char* what) {
    if (ec) throw system_error(ec, what);
    return lock;
}

}  // namespace

detail::started detail::start_acquire(const asio::any_io_executor& io, std::filesystem::path path, options o,
                                      wait_limit limit) {
    std::shared_ptr<engine::registry> home;
    started out;
    try {
        home = engine::registry_of(io);
    } catch (const system_error& e) {
        out.error = e.code();
        return out;
    }
    return home->start(io, std::move(path), std::move(o), limit);
}

void detail::submit(std::shared_ptr<engine::operation> waiting, acquire_completion done) {
    const auto home = waiting->home;
    home->submit(waiting, std::move(done));
}

void detail::cancel(const std::shared_ptr<engine::operation>& waiting) { waiting->home->cancel(waiting); }

lock_guard acquire(std::filesystem::path path, options o, error_code& ec) {
    return acquire_blocking(std::move(path), std::move(o), std::nullopt, ec);
}

lock_guard acquire(std::filesystem::path path, options o) {
    error_code ec;
    auto text = path.string();
    auto lock = acquire(std::move(path), std::move(o), ec);
    return or_throw(std::move(lock), ec, text.c_str());
}

lock_guard detail::try_acquire_for(std::filesystem::path path, std::chrono::steady_clock::duration timeout,
                                   options o, error_code& ec) {
    return acquire_blocking(std::move(path), std::move(o), timeout, ec);
}

lock_guard detail::try_acquire_for(std::filesystem::path path, std::chrono::steady_clock::duration timeout,
                                   options o) {
    error_code ec;
    auto text = path.string();
    auto lock = try_acquire_for(std::move(path), timeout, std::move(o), ec);
    return or_throw(std::move(lock), ec, text.c_str());
}

}  // namespace fslock
