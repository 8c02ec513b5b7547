// Running an event loop for as long as a test needs it.
#pragma once

#include <asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <thread>

namespace support {

/// Runs `io` until `condition` holds; false when that takes longer than half a minute, so that a poll of a minute
/// cannot be what made it hold.
[[nodiscard]] inline bool run_until(asio::io_context& io, const std::function<bool()>& condition,
                                    std::chrono::seconds limit = std::chrono::seconds(30)) {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (!condition()) {
        if (std::chrono::steady_clock::now() > end) return false;
        if (io.stopped()) io.restart();
        // Without work it returns at once; what is waited for comes from elsewhere.
        if (io.run_one_for(std::chrono::milliseconds(10)) == 0)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
}

}  // namespace support
