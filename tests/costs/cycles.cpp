// What is counted by the test of costs: acquires and releases one lock N times, and says how many allocations that took.
//
// Usage: cycles uncontended|handover DIRECTORY N
// A hand-over is one between two contexts, of which one waits, told by the kernel, when the other one releases. Both run
// on the one thread of this program, so that every run makes the same steps.
#include <asio/awaitable.hpp>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/io_context.hpp>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "fslock/fslock.hpp"

namespace {

namespace asio = fslock::asio;
using std::filesystem::path;

bool counting = false;
unsigned long allocations = 0;

constexpr int warm_up = 20;  // what is made once is made in these

asio::awaitable<void> uncontended(path lock_path, int cycles) {
    for (int i = 0; i < warm_up + cycles; ++i) {
        counting = i >= warm_up;
        const auto lock = co_await fslock::async_acquire(lock_path);
        if (!lock) std::abort();
    }
    counting = false;
}

void run_uncontended(const path& lock_path, int cycles) {
    asio::io_context io(1);
    asio::co_spawn(io, uncontended(lock_path, cycles), asio::detached);
    io.run();
}

/// One of two contexts that take turns.
struct side {
    asio::io_context io{1};
    fslock::lock_guard lock;
    bool asked = false;

    void ask(const path& lock_path) {
        fslock::async_acquire(io, lock_path, [this](fslock::error_code ec, fslock::lock_guard got) {
            if (ec) std::abort();
            lock = std::move(got);
        });
        io.restart();
        io.poll();  // until it waits for the kernel, or has the lock
    }
    void get() {
        io.restart();
        while (!lock) io.run_one();
        io.poll();
    }
};

void run_handover(const path& lock_path, int cycles) {
    std::array<side, 2> sides;
    sides[0].ask(lock_path);
    sides[0].get();
    for (int i = 0; i < warm_up + cycles; ++i) {
        counting = i >= warm_up;
        auto& from = sides.at(static_cast<std::size_t>(i % 2));
        auto& to = sides.at(static_cast<std::size_t>((i + 1) % 2));
        to.ask(lock_path);
        from.lock.release();
        to.get();
    }
    counting = false;
}

}  // namespace

extern "C" {

void* __libc_malloc(std::size_t size);

void* malloc(std::size_t size) {
    if (counting) ++allocations;
    return __libc_malloc(size);
}

}  // extern "C"

int main(int count, char** words) {
    if (count != 4) return 2;
    const bool contended = std::string_view(words[1]) == "handover";
    const path lock_path = path(words[2]) / "lock";
    (contended ? run_handover : run_uncontended)(lock_path, std::atoi(words[3]));
    std::printf("%lu\n", allocations);
    return 0;
}
