#include "worker.hpp"

#include <unistd.h>

#include <asio/bind_cancellation_slot.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>
#include <exception>
#include <fslock/fslock.hpp>
#include <random>
#include <stdexcept>

#include "ledger.hpp"
#include "message.hpp"

namespace demo {
namespace {

using std::chrono::milliseconds;
namespace asio = fslock::asio;

class worker {
 public:
    worker(asio::io_context& io, char name, const std::filesystem::path& directory)
        : name_(name),
          lock_(lock_in(directory)),
          ledger_(ledger_in(directory)),
          timer_(io),
          input_(io, STDIN_FILENO) {
        options_.label = std::string("demo worker ") + name;
        options_.on_event = [this](const fslock::event& e) { pass_on(e); };
    }

    asio::awaitable<void> work() {
        // Only waiting is given up when the end comes; a turn that has begun is finished. Not const: Asio 1.22
        // takes no constant token.
        auto unless_stopped = asio::bind_cancellation_slot(stop_.slot(), asio::use_awaitable);
        while (!stopping_) {
            fslock::lock_guard lock = co_await fslock::async_acquire(lock_, options_, unless_stopped);
            say(news::owns, lock.writer_epoch());
            co_await write_entry(lock);
            co_await lock.async_release();
            if (stopping_) break;
            timer_.expires_after(random_between(10, 40));
            co_await timer_.async_wait(unless_stopped);
        }
    }

    /// The parent closes the pipe, or dies: both end it.
    asio::awaitable<void> wait_for_the_end() {
        char c = 0;
        const auto buffer = asio::buffer(&c, 1);
        try {
            for (;;) co_await input_.async_read_some(buffer, asio::use_awaitable);
        } catch (const fslock::system_error&) {
            stopping_ = true;
            stop_.emit(asio::cancellation_type::terminal);
        }
    }

    /// How `work` ended. Without the pending read, nothing keeps the event loop running.
    void finished(const std::exception_ptr& error) {
        input_.close();
        try {
            if (error) std::rethrow_exception(error);
        } catch (const fslock::system_error& e) {
            if (!stopping_ || e.code() != asio::error::operation_aborted) throw;
        }
    }

    void say(news what, std::string_view epoch, int number = 0, std::string about = {},
             std::string text = {}) const {
        message m;
        m.at = std::chrono::steady_clock::now();
        m.worker = name_;
        m.what = what;
        m.epoch = epoch;
        m.number = number;
        m.about = std::move(about);
        m.text = std::move(text);
        const auto line = to_line(m);
        if (::write(STDOUT_FILENO, line.data(), line.size()) < 0) ::_exit(1);  // nobody listens any more
    }

 private:
    asio::awaitable<void> write_entry(fslock::lock_guard& lock) {
        const auto so_far = read(ledger_);
        mark m;
        m.number = so_far.empty() ? 1 : so_far.back().number + 1;
        m.worker = name_;
        m.epoch = lock.writer_epoch();
        append(ledger_, m);
        say(news::begins, m.epoch, m.number);

        timer_.expires_after(random_between(5, 15));
        co_await timer_.async_wait(asio::use_awaitable);

        const bool still_ours = co_await lock.async_verify();
        if (!still_ours) throw std::runtime_error("the lock was lost");
        m.begins = false;
        append(ledger_, m);
        say(news::ends, m.epoch, m.number);
    }

    void pass_on(const fslock::event& e) const {
        const auto& who = e.owner;
        switch (e.kind) {
            case fslock::event_kind::waiting:
                say(news::waits, who.writer_epoch, 0, who.label, fslock::to_string(e.proof));
                break;
            case fslock::event_kind::reclaimed:
                say(news::reclaims, who.writer_epoch, 0, who.label, fslock::to_string(e.proof));
                break;
            default:
                say(news::notes, who.writer_epoch, 0, who.label, fslock::to_string(e));
        }
    }

    milliseconds random_between(int least, int most) {
        return milliseconds(std::uniform_int_distribution<int>(least, most)(random_));
    }

    char name_;
    std::filesystem::path lock_;
    std::filesystem::path ledger_;
    fslock::options options_;
    asio::steady_timer timer_;
    asio::posix::stream_descriptor input_;
    asio::cancellation_signal stop_;
    bool stopping_ = false;
    std::minstd_rand random_{static_cast<unsigned>(::getpid())};
};

}  // namespace

int run_worker(char name, const std::filesystem::path& directory) {
    asio::io_context io(1);
    worker me(io, name, directory);
    const auto finished = [&me](const std::exception_ptr& error) { me.finished(error); };
    const auto rethrow = [](const std::exception_ptr& error) {
        if (error) std::rethrow_exception(error);
    };
    asio::co_spawn(io, me.wait_for_the_end(), rethrow);
    asio::co_spawn(io, me.work(), finished);
    try {
        io.run();
        return 0;
    } catch (const std::exception& e) {
        me.say(news::fails, {}, 0, {}, e.what());
        return 1;
    }
}

}  // namespace demo
