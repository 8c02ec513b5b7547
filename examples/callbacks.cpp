// Without coroutines: handlers and error codes.
//
//   callbacks LOCK       keeps the lock until standard input ends, SIGINT or SIGTERM comes, or it is lost
//
// Exits with 0 if it was given back, and with 1 otherwise.
#include <unistd.h>

#include <array>
#include <asio/bind_cancellation_slot.hpp>
#include <asio/buffer.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/signal_set.hpp>
#include <csignal>
#include <fslock/fslock.hpp>
#include <iostream>
#include <utility>

namespace asio = fslock::asio;
using fslock::error_code;

namespace {

class keeper {
 public:
    explicit keeper(asio::io_context& io) : io_(io), signals_(io, SIGINT, SIGTERM), input_(io, STDIN_FILENO) {}

    void start(const std::filesystem::path& path) {
        fslock::options o;
        o.label = "an example with callbacks";
        o.on_event = [](const fslock::event& e) { std::cerr << fslock::to_string(e) + '\n'; };
        auto got = [this](error_code ec, fslock::lock_guard lock) { on_acquired(ec, std::move(lock)); };
        fslock::async_acquire(io_, path, o, asio::bind_cancellation_slot(stop_waiting_.slot(), got));
        signals_.async_wait([this](error_code ec, int) {
            if (!ec) on_signal();
        });
    }

    [[nodiscard]] int status() const { return status_; }

 private:
    void on_acquired(error_code ec, fslock::lock_guard lock) {
        if (ec) return end("not acquired: " + ec.message(), 1);
        lock_ = std::move(lock);
        std::cout << "acquired " + lock_.path().string() + '\n' << std::flush;
        // Releasing it ends this wait, with operation_aborted.
        lock_.async_wait_lost([this](error_code aborted) {
            if (!aborted) on_lost();
        });
        read();
    }

    /// What is done under the lock: here, nothing but reading.
    void read() {
        input_.async_read_some(asio::buffer(buffer_), [this](error_code ec, std::size_t) {
            if (ec == asio::error::operation_aborted) return;
            ec ? release() : read();
        });
    }

    void on_signal() {
        if (lock_) {
            release();
        } else {
            stop_waiting_.emit(asio::cancellation_type::terminal);
        }
    }

    void on_lost() {
        error_code ec;
        lock_.release(ec);  // says errc::lost, and removes nothing
        end("lost: " + ec.message(), 1);
    }

    void release() {
        if (!lock_) return;
        lock_.async_release([this](error_code ec) {
            if (ec) return end("not given back: " + ec.message(), 1);
            end("given back", 0);
        });
    }

    void end(const std::string& text, int status) {
        std::cout << text + '\n' << std::flush;
        status_ = status;
        signals_.cancel();
        error_code ignored;
        input_.close(ignored);
    }

    asio::io_context& io_;
    asio::signal_set signals_;
    asio::posix::stream_descriptor input_;
    asio::cancellation_signal stop_waiting_;
    std::array<char, 256> buffer_{};
    fslock::lock_guard lock_;
    int status_ = 1;
};

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        std::cerr << "usage: callbacks LOCK\n";
        return 2;
    }
    try {
        asio::io_context io(1);
        keeper k(io);
        k.start(argv[1]);
        io.run();
        return k.status();
    } catch (const std::exception& e) {
        std::cerr << e.what() << '\n';
        return 1;
    }
}
