// Eight processes want one lock all the time: who gets it how often, and who has to wait for how long.
#include <fcntl.h>
#include <sys/file.h>

#include <array>
#include <asio/awaitable.hpp>
#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <atomic>
#include <functional>
#include <memory>
#include <numeric>

#include "fslock/fslock.hpp"
#include "process.hpp"

namespace {

namespace asio = fslock::asio;
using namespace std::chrono_literals;

constexpr std::size_t processes = 8;

struct page {
    struct share {
        std::atomic<std::int64_t> acquired;
        std::atomic<std::int64_t> again;  ///< of which right after its own
        std::atomic<double> longest_us;
    };
    std::array<share, processes> shares;
    std::atomic<int> ready;
    std::atomic<bool> go;
    std::atomic<std::int64_t> until_ns;
    std::atomic<int> last;  ///< who had it last

    /// `who` asked at `asked_ns` and has it now.
    void note(int who, std::int64_t asked_ns) {
        auto& mine = shares.at(static_cast<std::size_t>(who));
        ++mine.acquired;
        if (last.exchange(who) == who) ++mine.again;
        note_wait(who, asked_ns);
    }
    void note_wait(int who, std::int64_t asked_ns) {
        auto& longest = shares.at(static_cast<std::size_t>(who)).longest_us;
        longest = std::max(longest.load(), bench::microseconds_between(asked_ns, bench::now_ns()));
    }
    [[nodiscard]] bool over() const { return bench::now_ns() > until_ns; }
};

struct workload {
    std::chrono::microseconds held{0};   ///< how long each holds
    std::chrono::microseconds pause{0};  ///< how long it sleeps before it asks again
    bool one_is_greedy = false;          ///< the first one does not sleep

    [[nodiscard]] std::chrono::microseconds pause_of(int who) const {
        return one_is_greedy && who == 0 ? 0us : pause;
    }
};

void start_together(page& p) {
    ++p.ready;
    bench::wait_until("all are ready", [&] { return p.go.load(); });
}

/// Holding is work that takes time and no processor.
void work(const workload& w) {
    if (w.held != 0us) bench::sleep_for(w.held);
}

asio::awaitable<void> compete(page& p, const workload& w, int who, const std::filesystem::path& path) {
    asio::steady_timer timer(co_await asio::this_coro::executor);
    while (!p.over()) {
        const auto asked_ns = bench::now_ns();
        const auto left = std::chrono::nanoseconds(p.until_ns - asked_ns);
        fslock::lock_guard lock = co_await fslock::async_try_acquire(path, left);
        if (!lock) {
            p.note_wait(who, asked_ns);  // to the end, in vain
            co_return;
        }
        p.note(who, asked_ns);
        work(w);
        lock.release();
        if (w.pause_of(who) == 0us) continue;
        timer.expires_after(w.pause_of(who));
        co_await timer.async_wait(asio::use_awaitable);
    }
}

void with_fslock(page& p, const workload& w, int who, const std::filesystem::path& path) {
    asio::io_context io(1);
    start_together(p);
    asio::co_spawn(io, compete(p, w, who, path), [](const std::exception_ptr& e) {
        if (e) std::rethrow_exception(e);
    });
    io.run();
}

void with_flock(page& p, const workload& w, int who, const std::filesystem::path& path) {
    const int file = ::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    if (file < 0) bench::fail("open");
    start_together(p);
    while (!p.over()) {
        const auto asked_ns = bench::now_ns();
        if (::flock(file, LOCK_EX) != 0) bench::fail("flock");
        p.note(who, asked_ns);
        work(w);
        (void)::flock(file, LOCK_UN);
        if (w.pause_of(who) != 0us) bench::sleep_for(w.pause_of(who));
    }
}

using competitor = void (*)(page&, const workload&, int who, const std::filesystem::path&);

struct outcome {
    std::array<double, processes> acquired{};
    double again = 0;
    double longest_us = 0;
    double seconds = 0;

    [[nodiscard]] double total() const { return std::accumulate(acquired.begin(), acquired.end(), 0.0); }
    [[nodiscard]] double mean() const { return total() / processes; }
    [[nodiscard]] double least() const { return *std::min_element(acquired.begin(), acquired.end()); }
    [[nodiscard]] double most() const { return *std::max_element(acquired.begin(), acquired.end()); }
    /// Jain's index: 1 when all got the same, 1/8 when one got it all.
    [[nodiscard]] double fairness() const {
        const double squares = std::inner_product(acquired.begin(), acquired.end(), acquired.begin(), 0.0);
        return squares == 0 ? 0 : total() * total() / (processes * squares);
    }
};

outcome play(page& p, const workload& w, competitor run, const std::filesystem::path& path,
             std::chrono::milliseconds time) {
    new (&p) page{};
    p.last = -1;
    std::vector<std::unique_ptr<bench::child>> all;
    for (int who = 0; who < static_cast<int>(processes); ++who)
        all.push_back(std::make_unique<bench::child>([&, who] { run(p, w, who, path); }));
    bench::wait_until("all are ready", [&] { return p.ready == static_cast<int>(processes); });
    p.until_ns = bench::now_ns() + std::chrono::nanoseconds(time).count();
    p.go = true;
    for (auto& c : all) c->reap();
    outcome out;
    out.seconds = std::chrono::duration<double>(time).count();
    for (std::size_t i = 0; i < processes; ++i) {
        out.acquired[i] = static_cast<double>(p.shares[i].acquired);
        out.again += static_cast<double>(p.shares[i].again);
        out.longest_us = std::max(out.longest_us, p.shares[i].longest_us.load());
    }
    return out;
}

void report(bench::table& results, const std::string& name, const outcome& o, const outcome& reference,
            bool bounded) {
    bench::row rate{name + ": acquisitions", bench::text("%.0f /s", o.total() / o.seconds), "",
                    bench::ratio_text(o.total() / reference.total())};
    bench::row fair{"  Jain's index; ratio: most to least", bench::text("%.3f", o.fairness()), "",
                    o.least() == 0 ? "one has 0" : bench::ratio_text(o.most() / o.least())};
    bench::row wait{"  longest wait", bench::time_text(o.longest_us), "",
                    bench::ratio_text(o.longest_us / reference.longest_us)};
    if (bounded) {
        fair.bounds = {{"nobody starves: least >= mean / 10", o.least() >= o.mean() / 10}};
        wait.bounds = {{"< 1 s", o.longest_us < 1e6}};
    }
    results.add(rate);
    results.add(fair);
    results.add(wait);
    std::string each;
    for (const double a : o.acquired) each += bench::text(" %.0f", a);
    results.note(bench::text("  min %.0f, mean %.0f, max %.0f; twice in a row %.1f %%; each:%s", o.least(),
                             o.mean(), o.most(), o.total() == 0 ? 0 : 100 * o.again / o.total(), each.c_str()));
}

void measure(const bench::setting& here, bench::table& results) {
    struct round {
        const char* name;
        workload load;
    };
    const round rounds[] = {{"held for no time", {0us, 0us, false}},
                            {"held 100 us", {100us, 0us, false}},
                            {"held 1 ms", {1ms, 0us, false}},
                            {"held for no time; 1 greedy, 7 sleep 1 ms", {0us, 1ms, true}}};
    const auto time = std::chrono::milliseconds(here.count(4000, 1500));
    auto& p = bench::shared_page<page>();
    results.note(bench::text("8 processes ask again and again for %.1f s; ratios are to flock(2)",
                             std::chrono::duration<double>(time).count()));
    for (const auto& r : rounds) {
        results.note(r.name);
        const auto kernel = play(p, r.load, with_flock, here / "flock", time);
        const auto ours = play(p, r.load, with_fslock, here / "lock", time);
        report(results, "flock(2)", kernel, kernel, false);
        report(results, "async_acquire", ours, kernel, true);
    }
}

}  // namespace

int main(int argc, char** argv) {
    return bench::run(argc, argv, "fairness", measure);
}
