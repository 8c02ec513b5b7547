// The compiled half of fslock/lock_guard.hpp.
#include "fslock/lock_guard.hpp"

#include "held_lock.hpp"
#include "pool.hpp"
#include "registry.hpp"

namespace fslock {
namespace {

/// Runs `f` here, or where it may hang on the pool.
template <class F>
void run_step(const engine::held_lock& lock, F f) {
    if (!lock.slow()) {
        f();
        return;
    }
    auto shared = std::make_shared<F>(std::move(f));
    engine::pool::instance().submit(lock.lane(), [shared] { (*shared)(); });
}

}  // namespace

lock_guard detail::make_guard(std::shared_ptr<engine::held_lock> lock) noexcept {
    return lock_guard(std::move(lock));
}

asio::any_io_executor detail::executor_of_lock(const engine::held_lock* lock) {
    if (lock == nullptr) return asio::system_executor();
    return lock->home()->executor();
}

void detail::start_verify(std::shared_ptr<engine::held_lock> lock, completion_ptr<error_code, bool> done) {
    if (!lock) {
        done.release()->complete({}, false);
        return;
    }
    const auto& held = *lock;
    run_step(held, [lock = std::move(lock), done = std::move(done)]() mutable {
        error_code ec;
        const bool ours = lock->verify(ec);
        done.release()->complete(ec, ours);
    });
}

void detail::start_release(std::shared_ptr<engine::held_lock> lock, completion_ptr<error_code> done) {
    if (!lock) {
        done.release()->complete({});
        return;
    }
    auto state = std::make_shared<std::pair<std::shared_ptr<engine::held_lock>, completion_ptr<error_code>>>(
        lock, std::move(done));
    const auto step = [state] { state->second.release()->complete(state->first->release()); };
    try {
        run_step(*lock, step);
    } catch (...) {
        step();  // no thread to be had
    }
}

lock_guard& lock_guard::operator=(lock_guard&& other) noexcept {
    if (this != &other) {
        if (lock_) lock_->let_go();
        lock_ = std::exchange(other.lock_, nullptr);
    }
    return *this;
}

lock_guard::~lock_guard() {
    if (lock_) lock_->let_go();
}

const std::filesystem::path& lock_guard::path() const noexcept {
    static const std::filesystem::path none;
    return lock_ ? lock_->path() : none;
}

std::string_view lock_guard::writer_epoch() const noexcept {
    return lock_ ? std::string_view(lock_->epoch()) : std::string_view();
}

bool lock_guard::verify(error_code& ec) noexcept {
    ec = {};
    return lock_ && lock_->verify(ec);
}

bool lock_guard::verify() {
    error_code ec;
    const bool ours = verify(ec);
    if (ec) throw system_error(ec, path().string());
    return ours;
}

bool lock_guard::lost() const noexcept { return lock_ && lock_->lost(); }

void lock_guard::release(error_code& ec) noexcept {
    ec = {};
    if (const auto lock = std::exchange(lock_, nullptr)) ec = lock->release();
}

void lock_guard::release() {
    error_code ec;
    const auto text = path().string();
    release(ec);
    if (ec) throw system_error(ec, text);
}

}  // namespace fslock
