// A TCP service that several processes offer and one of them gives: the leader. It holds the lock, listens, and
// answers each line with its pid and its epoch. When it dies, however it dies, the next one listens.
//
//   leader_service LOCK PORT       (port 0: any free one) start it several times; kill -9 the one that leads
//   echo | nc 127.0.0.1 PORT       asks the leader who it is
//
// SIGINT and SIGTERM end it. Shows async_with_lock: who loses the lock stops to serve, and is a candidate
// again.
#include <unistd.h>

#include <asio/bind_cancellation_slot.hpp>
#include <asio/buffer.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/read_until.hpp>
#include <asio/signal_set.hpp>
#include <asio/write.hpp>
#include <charconv>
#include <csignal>
#include <fslock/fslock.hpp>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

namespace asio = fslock::asio;
using asio::use_awaitable;
using asio::ip::tcp;

namespace {

/// One write per line, so that lines of several processes do not mix.
void say(const std::string& text) {
    std::cout << std::to_string(::getpid()) + ' ' + text + '\n' << std::flush;
}

/// What only the leader has. When it goes, nobody is served any more, whoever is connected.
class service {
 public:
    service(const asio::any_io_executor& io, unsigned short port, std::string answer)
        : acceptor_(io, {asio::ip::address_v4::loopback(), port}), answer_(std::move(answer)) {}
    service(const service&) = delete;
    service& operator=(const service&) = delete;
    ~service() {
        fslock::error_code ignored;
        for (const auto& client : clients_)
            if (const auto socket = client.lock()) socket->close(ignored);
    }

    [[nodiscard]] unsigned short port() const { return acceptor_.local_endpoint().port(); }

    /// Until it is cancelled.
    asio::awaitable<void> serve() {
        for (;;) {
            auto client = std::make_shared<tcp::socket>(co_await acceptor_.async_accept(use_awaitable));
            std::erase_if(clients_, [](const auto& c) { return c.expired(); });
            clients_.push_back(client);
            asio::co_spawn(acceptor_.get_executor(), talk(client, answer_), asio::detached);
        }
    }

 private:
    static asio::awaitable<void> talk(std::shared_ptr<tcp::socket> client, std::string answer) {
        constexpr std::size_t longest_line = 1024;
        std::string line;
        try {
            for (;;) {
                const auto length = co_await asio::async_read_until(
                    *client, asio::dynamic_buffer(line, longest_line), '\n', use_awaitable);
                line.erase(0, length);
                co_await asio::async_write(*client, asio::buffer(answer), use_awaitable);
            }
        } catch (const fslock::system_error&) {
            // The client is gone, or we do not lead any more.
        }
    }

    tcp::acceptor acceptor_;
    std::string answer_;
    std::vector<std::weak_ptr<tcp::socket>> clients_;
};

asio::awaitable<void> lead(fslock::lock_guard& lock, unsigned short port) {
    const std::string epoch(lock.writer_epoch());
    const auto io = co_await asio::this_coro::executor;
    service mine(io, port, std::to_string(::getpid()) + ' ' + epoch + '\n');
    say("leads on port " + std::to_string(mine.port()) + ", epoch " + epoch);
    co_await mine.serve();
}

/// Leads as often as it may. Ends when it is cancelled, or cannot serve; then the next one leads.
asio::awaitable<void> stand_for_leader(std::filesystem::path lock, unsigned short port) {
    fslock::options o;
    o.label = "the leader";
    o.on_event = [](const fslock::event& e) { say(fslock::to_string(e)); };
    for (;;) {
        auto body = [port](fslock::lock_guard& held) { return lead(held, port); };
        try {
            co_await fslock::async_with_lock(lock, o, body);
        } catch (const fslock::system_error& e) {
            if (e.code() != fslock::errc::lost) throw;
            say("leads no more: " + e.code().message());
        }
    }
}

}  // namespace

int main(int argc, char** argv) {
    unsigned short port = 0;
    const std::string number = argc == 3 ? argv[2] : "";
    const auto [end, wrong] = std::from_chars(number.data(), number.data() + number.size(), port);
    if (number.empty() || wrong != std::errc() || end != number.data() + number.size()) {
        std::cerr << "usage: leader_service LOCK PORT\n";
        return 2;
    }
    asio::io_context io(1);
    asio::signal_set signals(io, SIGINT, SIGTERM);
    asio::cancellation_signal stop;
    signals.async_wait([&](fslock::error_code ec, int) {
        if (!ec) stop.emit(asio::cancellation_type::terminal);
    });
    int status = 0;
    const auto ended = [&](const std::exception_ptr& error) {
        signals.cancel();
        try {
            if (error) std::rethrow_exception(error);
        } catch (const fslock::system_error& e) {
            if (e.code() == asio::error::operation_aborted) return say("ends");
            say(std::string("fails: ") + e.what());
            status = 1;
        }
    };
    asio::co_spawn(io, stand_for_leader(argv[1], port), asio::bind_cancellation_slot(stop.slot(), ended));
    io.run();
    return status;
}
