// A program that has an event loop already, and wants a lock for a moment.
//
//   embedding LOCK SECONDS      answers the lines of standard input; for the line "lock" it acquires the lock,
//                               waiting for SECONDS at most, or until SIGINT
//
// Shows `||` of asio::experimental::awaitable_operators: the lock, a timer and a signal race. What loses is
// cancelled, and of a lock that lost nothing stays on disk. With a timeout alone, async_try_acquire does it.
#include <unistd.h>

#include <asio/buffer.hpp>
#include <asio/co_spawn.hpp>
#include <asio/experimental/awaitable_operators.hpp>
#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/read_until.hpp>
#include <asio/redirect_error.hpp>
#include <asio/signal_set.hpp>
#include <asio/steady_timer.hpp>
#include <csignal>
#include <cstdlib>
#include <fslock/fslock.hpp>
#include <iostream>
#include <string>
#include <variant>

namespace asio = fslock::asio;
using asio::use_awaitable;

namespace {

void say(const std::string& text) {
    std::cout << text + '\n' << std::flush;
}

class application {
 public:
    application(asio::io_context& io, std::filesystem::path lock, std::chrono::nanoseconds patience)
        : io_(io), input_(io, STDIN_FILENO), lock_(std::move(lock)), patience_(patience) {}

    /// The program's own business, which goes on while the lock is waited for.
    asio::awaitable<void> answer_lines() {
        std::string text;
        for (;;) {
            fslock::error_code ec;
            const auto length = co_await asio::async_read_until(input_, asio::dynamic_buffer(text), '\n',
                                                                asio::redirect_error(use_awaitable, ec));
            if (ec) break;
            const auto line = text.substr(0, length - 1);
            text.erase(0, length);
            if (line == "lock") {
                asio::co_spawn(io_, use_lock(), [](const std::exception_ptr& e) {
                    if (e) std::rethrow_exception(e);
                });
            } else {
                say("you said " + line);
            }
        }
    }

 private:
    asio::awaitable<void> use_lock() {
        using namespace asio::experimental::awaitable_operators;
        asio::steady_timer timer(io_, patience_);
        asio::signal_set signals(io_, SIGINT);
        fslock::options o;
        o.on_event = [](const fslock::event& e) { say(fslock::to_string(e)); };
        // `||` goes on after an exception until something succeeds. With its error as a value, the lock that
        // cannot be had ends the race like one that is had.
        fslock::error_code failed;
        auto acquired = fslock::async_acquire(io_, lock_, o, asio::redirect_error(use_awaitable, failed));
        auto too_late = timer.async_wait(use_awaitable);
        auto interrupted = signals.async_wait(use_awaitable);
        auto first = co_await (std::move(acquired) || std::move(too_late) || std::move(interrupted));
        if (first.index() == 1) co_return say("not in time");
        if (first.index() == 2) co_return say("interrupted");
        if (failed) co_return say("not acquired: " + failed.message());
        const fslock::lock_guard lock = std::move(std::get<0>(first));
        say("acquired, epoch " + std::string(lock.writer_epoch()));
    }

    asio::io_context& io_;
    asio::posix::stream_descriptor input_;
    std::filesystem::path lock_;
    std::chrono::nanoseconds patience_;
};

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) {
        std::cerr << "usage: embedding LOCK SECONDS\n";
        return 2;
    }
    try {
        const std::chrono::duration<double> patience(std::atof(argv[2]));
        asio::io_context io(1);
        application app(io, argv[1], std::chrono::duration_cast<std::chrono::nanoseconds>(patience));
        asio::co_spawn(io, app.answer_lines(), [](const std::exception_ptr& e) {
            if (e) std::rethrow_exception(e);
        });
        io.run();
        return EXIT_SUCCESS;
    } catch (const std::exception& e) {
        std::cerr << e.what() << '\n';
        return EXIT_FAILURE;
    }
}
