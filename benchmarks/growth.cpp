// How costs grow: with the locks that a process holds, with those who wait in it, with the processes, and with
// the entries of the directory.
#include <array>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <map>

#include "arena.hpp"
#include "cycles.hpp"
#include "json.hpp"

namespace {

namespace asio = fslock::asio;
using namespace std::chrono_literals;
using path = std::filesystem::path;

// ---- curves ----------------------------------------------------------------------------------------------

constexpr std::size_t most_numbers = 6;
constexpr int enough = 100;  ///< for what each takes to show beside what is needed once
using numbers = std::array<double, most_numbers>;

struct curve {
    std::string name;
    std::string key;                                  ///< of its file
    std::vector<std::string> columns;                 ///< with their units; at most `most_numbers`
    std::map<int, std::vector<numbers>> rounds = {};  ///< by what grows

    [[nodiscard]] std::vector<double> samples(int x, std::size_t column) const {
        std::vector<double> out;
        for (const auto& n : rounds.at(x)) out.push_back(n[column]);
        return out;
    }
};

std::string cell(const std::vector<double>& samples) {
    const double middle = bench::median(samples);
    if (std::isnan(middle)) return "-";
    const auto [least, most] = std::minmax_element(samples.begin(), samples.end());
    const double off = middle == 0 ? 0 : 100 * std::max(*most - middle, middle - *least) / middle;
    return bench::text("%.4g +-%.0f %%", middle, off);
}

void print(const curve& c) {
    std::string line = bench::text("  %-20s", c.name.c_str());
    for (const auto& name : c.columns) line += bench::text(" %22s", name.c_str());
    (void)std::printf("%s\n", line.c_str());
    for (const auto& [x, rounds] : c.rounds) {
        line = bench::text("  %-20d", x);
        for (std::size_t i = 0; i < c.columns.size(); ++i)
            line += bench::text(" %22s", cell(c.samples(x, i)).c_str());
        (void)std::printf("%s\n", line.c_str());
    }
    (void)std::fflush(stdout);
}

void save(const curve& c, bench::json& j, const path& tables) {
    j.open('{').add("name", c.name).open('[', "points");
    for (const auto& [x, rounds] : c.rounds) {
        j.open('{').add("at", x);
        for (std::size_t i = 0; i < c.columns.size(); ++i) j.add(c.columns[i], c.samples(x, i));
        j.close();
    }
    j.close().close();
    if (tables.empty()) return;
    std::ofstream out(tables / ("growth-" + c.key + ".tsv"));
    out << c.name;
    for (const auto& name : c.columns) out << '\t' << name;
    for (const auto& [x, rounds] : c.rounds) {
        out << '\n' << x;
        for (std::size_t i = 0; i < c.columns.size(); ++i) out << '\t' << bench::median(c.samples(x, i));
    }
    out << '\n';
}

/// What a process measures and tells.
template <class Measure>
numbers measured_apart(Measure measure) {
    static auto& told = bench::shared_page<numbers>();
    told.fill(std::nan(""));
    bench::child c([&] { told = measure(); });
    c.reap();
    if (c.failed()) throw std::runtime_error("a process of the benchmark failed");
    return told;
}

// ---- locks that are held ---------------------------------------------------------------------------------

constexpr auto heartbeat = 1000ms;  // more often than usual: more to measure

asio::awaitable<void> hold(const path& directory, int count, numbers& out) {
    fslock::options o;
    o.heartbeat_interval = heartbeat;
    std::vector<fslock::lock_guard> locks;
    locks.reserve(static_cast<std::size_t>(count) + 10);
    double heap = 0;
    for (int i = -10; i < count; ++i) {
        if (i == 0) {  // what is needed once is there now
            locks.clear();
            heap = bench::heap_in_use();
        }
        fslock::lock_guard lock = co_await fslock::async_acquire(directory / ("lock-" + std::to_string(i)), o);
        locks.push_back(std::move(lock));
    }
    out[1] = count < enough ? std::nan("") : (bench::heap_in_use() - heap) / count;
    std::vector<double> us;
    const path another = directory / "another";
    for (int i = 0; i < 40; ++i) {
        const auto began = bench::now_ns();
        co_await bench::coroutine_cycles(another, o, 25);
        us.push_back(bench::microseconds_between(began, bench::now_ns()) / 25);
    }
    out[0] = bench::median(us);
    constexpr auto window = 2 * heartbeat;
    asio::steady_timer timer(co_await asio::this_coro::executor, heartbeat);
    co_await timer.async_wait(asio::use_awaitable);
    const double cpu = bench::cpu_us(::getpid());
    timer.expires_after(window);
    co_await timer.async_wait(asio::use_awaitable);
    out[2] = (bench::cpu_us(::getpid()) - cpu) / (count * static_cast<double>(window / heartbeat));
}

numbers with_held(const path& directory, int count) {
    numbers out{};
    asio::io_context io(1);
    asio::co_spawn(io, hold(directory, count, out), bench::rethrow);
    io.run();
    return out;
}

// ---- those who wait --------------------------------------------------------------------------------------

numbers with_waiters(const path& at, int count) {
    asio::io_context io(1);
    int served = 0;
    const auto one = [&](fslock::error_code ec, fslock::lock_guard lock) {
        if (ec) throw fslock::system_error(ec);
        ++served;
        lock.release();
    };
    fslock::lock_guard first;
    fslock::async_acquire(io, at, [&](fslock::error_code ec, fslock::lock_guard lock) {
        if (ec) throw fslock::system_error(ec);
        first = std::move(lock);
    });
    while (!first) io.run_one();
    io.run_for(10ms);
    const double heap = bench::heap_in_use();
    const auto asked = bench::now_ns();
    for (int i = 0; i < count; ++i) fslock::async_acquire(io, at, one);
    io.poll();
    const auto waiting = bench::now_ns();
    const double bytes = count < enough ? std::nan("") : (bench::heap_in_use() - heap) / count;
    const auto released = bench::now_ns();
    first.release();
    while (served < count) io.run_one();
    const auto ended = bench::now_ns();
    return {bench::microseconds_between(asked, waiting) / count,
            bench::microseconds_between(released, ended) / count, bytes};
}

// ---- processes -------------------------------------------------------------------------------------------

numbers with_processes(bench::arena& a, const path& directory, int count, std::chrono::milliseconds time) {
    const auto& peers = bench::all_peers();  // fslock and flock(2) are the first of them
    const bench::workload w{"processes", count, 1, 1, 500us, 0us, 0, false};
    numbers out{};
    for (std::size_t i = 0; i < 2; ++i) {
        bench::match m(a, w, peers[i], directory.native() + std::to_string(i));
        const auto o = m.run(time, [] {});
        if (a.overlaps != 0) throw std::runtime_error(peers[i].name + ": two owners at once");
        out[i] = o[bench::per_second];
        out[2 + i] = o[bench::wakeup_p50];
        out[4 + i] = o[bench::cpu_us_each];
    }
    return out;
}

// ---- entries of the directory ----------------------------------------------------------------------------

numbers with_entries(const path& directory, int rounds) {
    std::vector<bench::contestant> all = {
        {"bare", bench::bare_cycles}, {"fslock", [](const path& p, int n) { bench::await_cycles(p, {}, n); }}};
    bench::in_turns(all, directory / "lock", rounds, 50);
    return {bench::median(all[0].us), bench::median(all[1].us), bench::median(all[1].ratios)};
}

// ---- all of them -----------------------------------------------------------------------------------------

std::vector<int> steps(int factor, int most) {
    std::vector<int> all;
    for (int n = 1; n < most; n *= factor) all.push_back(n);
    all.push_back(most);
    return all;
}

void progress(const std::string& what, int round, int x) {
    (void)std::fprintf(stderr, "%s, round %d: %d\n", what.c_str(), round + 1, x);
}

void measure(const bench::setting& here, bench::table& results) {
    const int held = std::min(bench::raise_limit(results, here.count(10'000, 1000)), 10'000);
    const int rounds = here.count(5, 1);
    results.note(bench::text("medians of %d rounds, each through all steps; heartbeats every second", rounds));
    curve by_held{"held locks", "held", {"cycle_us", "heap_bytes", "beat_cpu_us"}};
    curve by_waiters{"waiters", "waiters", {"ask_us", "turn_us", "heap_bytes"}};
    curve by_processes{"processes",
                       "processes",
                       {"fslock_per_second", "flock_per_second", "fslock_wakeup_us", "flock_wakeup_us",
                        "fslock_cpu_us", "flock_cpu_us"}};
    curve by_entries{"directory entries", "entries", {"bare_us", "fslock_us", "ratio"}};
    auto& a = bench::shared_page<bench::arena>();
    int made = 0;
    const auto fresh = [&] {
        const auto directory = here / std::to_string(++made);
        std::filesystem::create_directory(directory);
        return directory;
    };
    for (int round = 0; round < rounds; ++round) {
        for (const int n : steps(10, held)) {
            progress(by_held.name, round, n);
            const auto directory = fresh();
            by_held.rounds[n].push_back(measured_apart([&] { return with_held(directory, n); }));
        }
        for (const int n : steps(10, here.count(10'000, 1000))) {
            progress(by_waiters.name, round, n);
            const auto directory = fresh();
            by_waiters.rounds[n].push_back(measured_apart([&] { return with_waiters(directory / "lock", n); }));
        }
        for (const int n : steps(2, here.count(64, 8))) {
            progress(by_processes.name, round, n);
            by_processes.rounds[n].push_back(
                with_processes(a, fresh() / "match", n, std::chrono::milliseconds(here.count(2000, 300))));
        }
    }
    // One directory for all rounds, and last: where thousands of files were just removed, ext4 takes its time
    // to make another one.
    const auto crowded = fresh();
    int there = 0;
    for (const int n : steps(10, here.count(100'000, 1000))) {
        for (; there < n; ++there) std::ofstream(crowded / ("entry-" + std::to_string(there)));
        for (int round = 0; round < rounds; ++round) {
            progress(by_entries.name, round, n);
            by_entries.rounds[n].push_back(with_entries(crowded, 20));
        }
    }
    bench::json j;
    j.open('{');
    bench::add_machine(j);
    j.add("rounds", rounds).open('[', "curves");
    for (const auto* c : {&by_held, &by_waiters, &by_processes, &by_entries}) {
        print(*c);
        save(*c, j, here.tables);
    }
    j.close().close().save(here.json);
}

}  // namespace

int main(int argc, char** argv) {
    return bench::run(argc, argv, "growth", measure, {}, bench::in_memory());
}
