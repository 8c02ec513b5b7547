// kill -9 of the owner, over and over: how long it takes until the process that waits owns the lock.
#include <fcntl.h>

#include <asio/io_context.hpp>
#include <atomic>
#include <memory>

#include "fslock/fslock.hpp"
#include "process.hpp"

namespace {

namespace asio = fslock::asio;
using namespace std::chrono_literals;

/// What the processes of one lock tell each other.
struct page {
    std::atomic<int> owner;  ///< pid
    std::atomic<std::int64_t> owned_ns;
    std::atomic<int> waits;  ///< pid
};

/// Waits for the lock, owns it, and is killed at last.
void contend(page& p, const std::filesystem::path& path) {
    asio::io_context io(1);
    fslock::lock_guard lock;
    fslock::async_acquire(io, path, [&](fslock::error_code ec, fslock::lock_guard taken) {
        p.owned_ns = bench::now_ns();
        if (ec) throw fslock::system_error(ec);
        lock = std::move(taken);
        p.owner = ::getpid();
    });
    asio::post(io, [&] { p.waits = ::getpid(); });
    io.run();
}

/// Blocks in the kernel until the owner's witness is free, which is the first that anybody can know of its
/// death.
void watch_witness(page& p, const std::filesystem::path& path) {
    const int record = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (record < 0) bench::fail("open");
    struct flock first_byte {};
    first_byte.l_type = F_RDLCK;
    first_byte.l_len = 1;
    p.waits = ::getpid();
    if (::fcntl(record, F_OFD_SETLKW, &first_byte) != 0) bench::fail("fcntl");
    p.owned_ns = bench::now_ns();
    p.owner = ::getpid();
    for (;;) (void)::pause();
}

using role = void (*)(page&, const std::filesystem::path&);

std::unique_ptr<bench::child> start(page& p, const std::filesystem::path& path, role r) {
    return std::make_unique<bench::child>([&p, path, r] { r(p, path); });
}

/// Kills `owner` while `next` sleeps, and returns how long after that `next` has what it waits for.
double kill_to_next(page& p, bench::child& owner, const bench::child& next) {
    bench::wait_until("it waits", [&] { return p.waits == next.pid() && next.asleep(); });
    bench::sleep_for(bench::at_random(2ms, 32ms));
    const auto killed_ns = bench::now_ns();
    owner.kill();
    bench::wait_until("it owns", [&] { return p.owner == next.pid(); });
    owner.reap();  // a zombie until here: nobody has to reap an owner for its lock to be free
    return bench::microseconds_between(killed_ns, p.owned_ns);
}

void measure(const bench::setting& here, bench::table& results) {
    auto& ours = bench::shared_page<page>();
    auto& bare = bench::shared_page<page>();
    std::vector<double> to_owner;
    std::vector<double> to_witness;
    auto owner = start(ours, here / "lock", contend);
    bench::wait_until("the first owns", [&] { return ours.owner == owner->pid(); });
    for (int kills = 0; kills < here.count(300, 100); ++kills) {
        auto next = start(ours, here / "lock", contend);
        to_owner.push_back(kill_to_next(ours, *owner, *next));
        owner = std::move(next);

        bench::child victim([&] { contend(bare, here / "watched"); });
        bench::wait_until("the victim owns", [&] { return bare.owner == victim.pid(); });
        const auto watcher = start(bare, here / "watched", watch_witness);
        to_witness.push_back(kill_to_next(bare, victim, *watcher));
    }
    const double floor_us = bench::median(to_witness);
    const double p99 = bench::percentile(to_owner, 0.99);
    results.note(bench::text("%zu kills each, in turns", to_owner.size()));
    results.add(bench::times("kill to witness free, blocked in F_OFD_SETLKW", to_witness, floor_us));
    results.add(bench::times("kill to next owner", to_owner, floor_us,
                             {{"median < 1 ms", bench::median(to_owner) < 1e3}, {"p99 < 5 ms", p99 < 5e3}}));
}

}  // namespace

int main(int argc, char** argv) {
    return bench::run(argc, argv, "takeover", measure, {}, bench::in_memory());
}
