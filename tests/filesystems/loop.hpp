// An event loop that a test drives by hand, and what was asked of it.
#pragma once

#include <asio/bind_cancellation_slot.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/io_context.hpp>
#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>

#include "engine/crafted.hpp"
#include "fslock/fslock.hpp"
#include "stalling_mount.hpp"
#include "support/directory.hpp"
#include "support/run_until.hpp"

namespace support {

/// For what takes a second at most, by design, while a mount or a loop hangs for longer.
inline constexpr auto promptly = 20s;

/// Options with which a dead owner is taken over at once, or nearly so.
[[nodiscard]] inline fslock::options quick() {
    fslock::options o;
    o.heartbeat_interval = 50ms;
    o.stale_after = 200ms;
    o.foreign_stale_after = 400ms;
    o.foreign_confirm = 100ms;
    o.poll_interval = 10ms;
    return o;
}

/// One acquisition, and what came of it. Must outlive the context that it is made on.
struct request {
    request() = default;
    request(const request&) = delete;
    request& operator=(const request&) = delete;

    [[nodiscard]] auto handler() {
        return fslock::asio::bind_cancellation_slot(signal.slot(),
                                                    [this](fslock::error_code ec, fslock::lock_guard got) {
                                                        ++calls;
                                                        error = ec;
                                                        lock = std::move(got);
                                                    });
    }
    [[nodiscard]] bool done() const { return calls != 0; }
    void cancel() { signal.emit(fslock::asio::cancellation_type::terminal); }

    fslock::asio::cancellation_signal signal;
    int calls = 0;
    fslock::error_code error;
    fslock::lock_guard lock;
};

/// Asks for a lock with all the time there is, and runs `io` until it is had.
inline void hold(fslock::asio::io_context& io, const std::filesystem::path& path, const fslock::options& o,
                 request& into) {
    fslock::async_acquire(io, path, o, into.handler());
    BOOST_TEST_REQUIRE(run_until(io, [&] { return into.done(); }));
    BOOST_TEST_REQUIRE(static_cast<bool>(into.lock));
}

/// Asks for `path`, which hangs.
inline void hang_at(fslock::asio::io_context& io, const stalling_mount& m, const std::filesystem::path& path,
                    request& r) {
    fslock::async_acquire(io, path, minutes(), r.handler());
    BOOST_TEST_REQUIRE(run_until(io, [&] { return m.hangs(); }));
}

/// Counts the heartbeats that can be seen in a record.
class pulse {
 public:
    explicit pulse(std::filesystem::path record) : record_(std::move(record)), last_(heartbeat()) {}

    /// How many there have been so far, if somebody looks often.
    [[nodiscard]] int count() {
        auto now = heartbeat();
        if (now.empty() || now == last_) return count_;
        last_ = std::move(now);
        return ++count_;
    }

 private:
    [[nodiscard]] std::string heartbeat() const { return field_of(read_file(record_), "heartbeat_at_ms"); }

    std::filesystem::path record_;
    std::string last_;
    int count_ = 0;
};

}  // namespace support
