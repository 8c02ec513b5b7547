// Ten thousand different locks, held by one process and waited for by another: what that costs while nothing
// happens.
#include <fcntl.h>
#include <sys/stat.h>

#include <array>
#include <asio/awaitable.hpp>
#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <atomic>
#include <numeric>

#include "fslock/fslock.hpp"
#include "process.hpp"

namespace {

namespace asio = fslock::asio;
using namespace std::chrono_literals;

constexpr auto heartbeat = 5000ms;  // the default of `options`

struct page {
    std::atomic<int> held;
    std::atomic<double> heap_bytes;  ///< of one held lock
    std::atomic<int> asked;
    std::atomic<int> inherited;  ///< that the other process got, after all were released
    std::atomic<std::int64_t> released_ns;
    std::atomic<std::int64_t> inherited_ns;
};

std::filesystem::path lock_at(const std::filesystem::path& directory, int number) {
    return directory / ("lock-" + std::to_string(number));
}

// ---- the two processes -----------------------------------------------------------------------------------

asio::awaitable<void> hold_all(page& p, const std::filesystem::path& directory, int count,
                               asio::posix::stream_descriptor& told) {
    std::vector<fslock::lock_guard> locks;
    locks.reserve(static_cast<std::size_t>(count));
    double heap = 0;
    for (int i = 0; i < count; ++i) {
        fslock::lock_guard lock = co_await fslock::async_acquire(lock_at(directory, i));
        locks.push_back(std::move(lock));
        if (i == 9) heap = bench::heap_in_use();  // what is needed once is there now
    }
    p.heap_bytes = (bench::heap_in_use() - heap) / (count - 10);
    p.held = count;
    char c = 0;
    co_await told.async_read_some(asio::buffer(&c, 1), asio::use_awaitable);
    p.released_ns = bench::now_ns();
}

void holder(page& p, const std::filesystem::path& directory, int count, int told) {
    asio::io_context io(1);
    asio::posix::stream_descriptor pipe(io, told);
    asio::co_spawn(io, hold_all(p, directory, count, pipe), bench::rethrow);
    io.run();
}

asio::awaitable<void> wait_for_one(page& p, std::filesystem::path path, int count) {
    ++p.asked;
    const fslock::lock_guard lock = co_await fslock::async_acquire(path);
    if (++p.inherited == count) p.inherited_ns = bench::now_ns();
}

void contender(page& p, const std::filesystem::path& directory, int count) {
    asio::io_context io(1);
    for (int i = 0; i < count; ++i)
        asio::co_spawn(io, wait_for_one(p, lock_at(directory, i), count), bench::rethrow);
    io.run();
}

// ---- what is measured ------------------------------------------------------------------------------------

std::string percent(double share) {
    return bench::text("%.2f %%", 100 * share);
}

/// The share of one core that these calls take by themselves when they are made for `count` locks once in
/// `interval`.
template <class Calls>
double bare_share(int count, std::chrono::milliseconds interval, Calls calls) {
    const double before = bench::cpu_us(::getpid());
    for (int i = 0; i < count; ++i) calls(i);
    return (bench::cpu_us(::getpid()) - before) / std::chrono::duration<double, std::micro>(interval).count();
}

/// The least that a heartbeat can be, on files of the size of a record.
double bare_beats(const bench::setting& here, int count) {
    std::vector<int> files;
    const std::string record(300, 'x');
    for (int i = 0; i < count; ++i) {
        const auto path = here / ("bare-" + std::to_string(i));
        files.push_back(::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
        if (files.back() < 0 || ::pwrite(files.back(), record.data(), record.size(), 0) < 0) bench::fail(path);
    }
    const double share = bare_share(count, heartbeat, [&](int i) {
        const auto path = here / ("bare-" + std::to_string(i));
        struct stat there {};
        if (::pwrite(files[static_cast<std::size_t>(i)], record.data(), record.size(), 0) < 0 ||
            ::lstat(path.c_str(), &there) != 0)
            bench::fail(path);
    });
    for (const int f : files) (void)::close(f);
    return share;
}

/// What it takes to ask for every witness every 100 ms.
double bare_polls(const std::filesystem::path& directory, int count) {
    return bare_share(count, 100ms, [&](int i) {
        const auto path = lock_at(directory, i);
        const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
        struct flock range {};
        range.l_type = F_RDLCK;
        range.l_len = 1;
        if (fd < 0 || ::fcntl(fd, F_OFD_GETLK, &range) != 0) bench::fail(path);
        (void)::close(fd);
    });
}

std::int64_t heartbeat_at_ms(const std::filesystem::path& record) {
    std::ifstream in(record);
    std::string line;
    std::getline(in, line);
    constexpr std::string_view key = "\"heartbeat_at_ms\":";
    const auto at = line.find(key);
    if (at == std::string::npos) throw std::runtime_error("no heartbeat in " + record.native());
    return std::stoll(line.substr(at + key.size()));
}

/// How many of the last beats of all locks fell into each 250 ms of one interval.
std::array<int, 20> beats_in_slots(const std::filesystem::path& directory, int count) {
    std::vector<std::int64_t> beats;
    for (int i = 0; i < count; ++i) beats.push_back(heartbeat_at_ms(lock_at(directory, i)));
    std::array<int, 20> slots{};
    const auto last = *std::max_element(beats.begin(), beats.end());
    for (const auto b : beats) {
        const auto slot = static_cast<std::size_t>((last - b) / (heartbeat.count() / 20));
        ++slots.at(std::min(slot, slots.size() - 1));
    }
    return slots;
}

void report_holder(bench::table& results, page& p, double share, double floor,
                   const std::array<int, 20>& slots) {
    results.add({"holder: heap of a held lock",
                 bench::text("%.0f bytes", p.heap_bytes.load()),
                 "",
                 bench::ratio_text(p.heap_bytes / sizeof(fslock::options)),
                 {{"< 1024", p.heap_bytes < 1024}}});
    results.note(bench::text("  the ratio is to the %zu bytes of `options`, which each lock has a copy of",
                             sizeof(fslock::options)));
    results.add({"bare calls of the heartbeats (pwrite, lstat)", percent(floor), "", "1.00 x"});
    results.add({"holder: CPU, of one core",
                 percent(share),
                 "",
                 bench::ratio_text(share / floor),
                 {{"< 2 %", share < 0.02}}});
    const double mean = std::accumulate(slots.begin(), slots.end(), 0.0) / static_cast<double>(slots.size());
    const int most = *std::max_element(slots.begin(), slots.end());
    results.add({"holder: most heartbeats in 250 ms",
                 std::to_string(most),
                 "",
                 bench::ratio_text(most / mean),
                 {{"< 1.5 x the mean", most < 1.5 * mean}}});
    std::string line = "  heartbeats by 250 ms, latest first:";
    for (const int s : slots) line += ' ' + std::to_string(s);
    results.note(line);
}

void measure(const bench::setting& here, bench::table& results) {
    const int count = bench::raise_limit(results, 10'000);
    if (count < 100) throw std::runtime_error("too few descriptors");
    const double scale = 10'000.0 / count;
    if (count < 10'000) results.note(bench::text("%d locks only: CPU is scaled by %.2f", count, scale));
    const auto window = std::chrono::milliseconds(here.count(20'000, 5'000));
    auto& p = bench::shared_page<page>();
    int pipe[2];
    if (::pipe(pipe) != 0) bench::fail("pipe");
    const auto locks = here / "locks";
    std::filesystem::create_directory(locks);

    const double beats_floor = scale * bare_beats(here, count);
    const bench::child holding([&] { holder(p, locks, count, pipe[0]); });
    bench::wait_until(
        "all are held", [&] { return p.held == count; }, 10ms);
    bench::sleep_for(heartbeat + 500ms);  // every lock has its own beat by now
    const double held_share = scale * bench::cpu_share(holding.pid(), window);
    bench::expect_no_failed_child();
    const auto slots = beats_in_slots(locks, count);
    report_holder(results, p, held_share, beats_floor, slots);

    std::ifstream quota("/proc/sys/fs/inotify/max_user_watches");
    std::string watches;
    quota >> watches;
    results.note("inotify watches of a user: " + watches + "; what is not watched is looked at every 100 ms");
    const double polls_floor = scale * bare_polls(locks, count);
    const bench::child waiting([&] { contender(p, locks, count); });
    bench::wait_until(
        "all were asked for", [&] { return p.asked == count; }, 10ms);
    // Until it has looked at all of them: where many files were just removed ext4 takes its time to make others.
    for (int tries = 0; tries < 60 && bench::cpu_share(waiting.pid(), 1s) > 0.05; ++tries) {
    }
    const double waiting_share = scale * bench::cpu_share(waiting.pid(), window);
    bench::expect_no_failed_child();
    const int too_early = p.inherited;
    results.add({"bare calls of looking every 100 ms (open, ask, close)", percent(polls_floor), "", "1.00 x"});
    results.add({"contender: CPU, of one core",
                 percent(waiting_share),
                 "",
                 bench::ratio_text(waiting_share / polls_floor),
                 {{"< 2 %", waiting_share < 0.02}}});
    if (::write(pipe[1], "g", 1) != 1) bench::fail("write");
    bench::wait_until(
        "the contender gets them all", [&] { return p.inherited == count; }, 10ms);
    const double all_us = bench::microseconds_between(p.released_ns, p.inherited_ns);
    results.add({"all released, all had by the contender, per lock",
                 bench::time_text(all_us / count),
                 "",
                 "",
                 {{"all, none early", too_early == 0}}});
}

}  // namespace

int main(int argc, char** argv) {
    return bench::run(argc, argv, "many", measure, {}, bench::in_memory());
}
