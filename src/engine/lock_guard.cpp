// The compiled half of fslock/lock_guard.hpp.
#include "fslock/lock_guard.hpp"

#include "held_lock.hpp"
#include "pool.hpp"
#include "registry.hpp"

namespace fslock {
namespace {

using engine::held_lock;

/// Hands a step that may hang to the pool; the handler stays with the context.
template <class F>
void on_pool(const std::shared_ptr<held_lock>& lock, engine::slow_step handler, F step) {
    const auto parked = lock->home()->park(std::move(handler));
    const auto run = [lock, parked, step] {
        error_code ec;
        const bool ours = step(*lock, ec);
        lock->home()->finish(parked, ec, ours);
    };
    try {
        engine::pool::instance().submit(lock->lane(), run);
    } catch (...) {
        run();  // no thread to be had: late is better than never
    }
}

bool may_hang(const std::shared_ptr<held_lock>& lock) { return lock && lock->slow() && !lock->inherited(); }

}  // namespace

lock_guard detail::make_guard(std::shared_ptr<engine::held_lock> lock) noexcept {
    return lock_guard(std::move(lock));
}

asio::any_io_executor detail::executor_of_lock(const engine::held_lock* lock) {
    if (lock == nullptr) return asio::system_executor();
    return lock->home()->executor();
}

std::shared_ptr<engine::lost_wait> detail::make_loss_wait(std::shared_ptr<held_lock> lock) {
    return std::make_shared<engine::lost_wait>(std::move(lock));
}

void detail::start_loss_wait(const std::shared_ptr<engine::lost_wait>& wait, completion_ptr<error_code> done) {
    if (wait->lock && !wait->lock->inherited()) {
        wait->lock->home()->await_loss(wait, std::move(done));
    } else {
        done.release()->complete(asio::error::operation_aborted);
    }
}

void detail::cancel(const std::shared_ptr<engine::lost_wait>& waiting) {
    if (waiting->lock) waiting->lock->home()->cancel(waiting);
}

void detail::end_loss_waits(const held_lock* lock) noexcept {
    if (lock != nullptr) lock->end_loss_waits();
}

void detail::start_verify(std::shared_ptr<held_lock> lock, completion_ptr<error_code, bool> done) {
    const auto step = [](held_lock& l, error_code& ec) { return l.verify(ec); };
    if (may_hang(lock)) return on_pool(lock, {std::move(done), nullptr}, step);
    error_code ec;
    const bool ours = lock && step(*lock, ec);
    done.release()->complete(ec, ours);
}

void detail::start_release(std::shared_ptr<held_lock> lock, completion_ptr<error_code> done) {
    const auto step = [](held_lock& l, error_code& ec) { return ec = l.release(), true; };
    if (may_hang(lock)) return on_pool(lock, {nullptr, std::move(done)}, step);
    error_code ec;
    if (lock) (void)step(*lock, ec);
    done.release()->complete(ec);
}

lock_guard& lock_guard::operator=(lock_guard&& other) noexcept {
    if (this != &other) {
        if (lock_) lock_->let_go();
        lock_ = std::exchange(other.lock_, nullptr);
        detail::end_loss_waits(lock_.get());
    }
    return *this;
}

lock_guard::~lock_guard() {
    if (lock_) lock_->let_go();
}

/// Never destroyed, like the guards that ask.
static const std::filesystem::path& no_path() noexcept {
    static const auto& none = *new std::filesystem::path;
    return none;
}

/// Made before there are threads, one of which might fork while another makes it.
[[maybe_unused]] static const std::filesystem::path& made_early = no_path();

const std::filesystem::path& lock_guard::path() const noexcept { return lock_ ? lock_->as_path() : no_path(); }

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
