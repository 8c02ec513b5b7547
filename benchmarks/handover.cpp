// Two processes hand one lock to each other: how long the next owner, who is waiting already, takes to wake up.
#include <fcntl.h>
#include <sys/file.h>

#include <array>
#include <asio/io_context.hpp>
#include <atomic>
#include <functional>
#include <memory>

#include "fslock/fslock.hpp"
#include "process.hpp"

namespace {

namespace asio = fslock::asio;
using namespace std::chrono_literals;

constexpr auto poll_interval = 100ms;

struct page {
    std::atomic<std::int64_t> released_ns;
    std::atomic<int> owner;  ///< pid
    std::atomic<int> waits;  ///< pid of who asked and did not get it yet
    std::atomic<std::int64_t> first_ns;
    std::atomic<std::int64_t> last_ns;
    std::atomic<int> taken;
    int turns;              ///< how many at most
    std::int64_t until_ns;  ///< and until when
    std::array<double, 4096> latency_us;

    [[nodiscard]] bool finished() const { return taken >= turns || bench::now_ns() > until_ns; }
};

/// One way to lock. `take` returns when it has the lock; `asks` is called when there is nothing left to do but
/// to wait.
class way {
 public:
    virtual ~way() = default;
    virtual void take(const std::function<void()>& asks) = 0;
    virtual void give() = 0;
    std::int64_t taken_ns = 0;
};

class with_fslock : public way {
 public:
    explicit with_fslock(std::filesystem::path path) : path_(std::move(path)) {}

    void take(const std::function<void()>& asks) override {
        fslock::async_acquire(io_, path_, [this](fslock::error_code ec, fslock::lock_guard lock) {
            taken_ns = bench::now_ns();
            if (ec) throw fslock::system_error(ec);
            lock_ = std::move(lock);
        });
        asio::post(io_, asks);  // behind whatever the wait itself has posted
        io_.restart();
        while (!lock_) io_.run_one();
        io_.poll();  // nothing of this turn is left for the next
    }
    void give() override { lock_.release(); }

 private:
    asio::io_context io_{1};
    const std::filesystem::path path_;
    fslock::lock_guard lock_;
};

/// What a program does that has no way to wait: it tries again after a while.
class with_polling : public way {
 public:
    explicit with_polling(std::filesystem::path path) : path_(std::move(path)) {}

    void take(const std::function<void()>& asks) override {
        while (!tried()) {
            asks();
            bench::sleep_for(poll_interval);
        }
    }
    void give() override { lock_.release(); }

 private:
    bool tried() {
        fslock::async_try_acquire_once(io_, path_, [this](fslock::error_code ec, fslock::lock_guard lock) {
            taken_ns = bench::now_ns();
            if (ec) throw fslock::system_error(ec);
            lock_ = std::move(lock);
        });
        io_.restart();
        io_.run_one();
        while (io_.poll_one() != 0) {
        }
        return static_cast<bool>(lock_);
    }

    asio::io_context io_{1};
    const std::filesystem::path path_;
    fslock::lock_guard lock_;
};

class with_flock : public way {
 public:
    explicit with_flock(const std::filesystem::path& path)
        : file_(::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600)) {
        if (file_ < 0) bench::fail("open");
    }

    void take(const std::function<void()>& asks) override {
        if (::flock(file_, LOCK_EX | LOCK_NB) != 0) {
            asks();
            if (::flock(file_, LOCK_EX) != 0) bench::fail("flock");
        }
        taken_ns = bench::now_ns();
    }
    void give() override { (void)::flock(file_, LOCK_UN); }

 private:
    int file_;
};

/// How long to hold, from the moment the lock was taken.
using holding = std::function<void(std::int64_t taken_ns)>;

/// Long, and at random: no two releases meet a poller in the same phase.
void hold_at_random(std::int64_t) {
    bench::sleep_for(bench::at_random(2ms, 2ms + poll_interval));
}

void hold_half_a_millisecond(std::int64_t taken_ns) {
    while (bench::now_ns() < taken_ns + 500'000) {
    }
}

/// One of the two. Releases only when the other one is asleep, and asks again only when the other one has it.
void take_turns(page& p, way& w, const holding& hold) {
    const int me = ::getpid();
    while (!p.finished()) {
        w.take([&] { p.waits = me; });
        const auto n = static_cast<std::size_t>(p.taken++);
        p.latency_us.at(n) = bench::microseconds_between(p.released_ns, w.taken_ns);
        if (n == 1) p.first_ns = w.taken_ns;
        p.last_ns = w.taken_ns;
        if (p.waits == me) p.waits = 0;
        p.owner = me;
        const auto other_waits = [&] { return p.waits != 0 && bench::child::is_asleep(p.waits); };
        bench::wait_until(
            "the other one waits", [&] { return p.finished() || other_waits(); }, 20us);
        if (!p.finished()) hold(w.taken_ns);
        p.released_ns = bench::now_ns();
        w.give();
        bench::wait_until(
            "the other one has it", [&] { return p.finished() || p.owner != me; }, 20us);
    }
}

struct contestant {
    std::function<std::unique_ptr<way>()> make;
    std::vector<double> latency_us = {};
    std::vector<double> turn_us = {};
};

/// A pair of processes and their turns, for ten seconds at most. The first two turns are for nothing: nobody
/// waits yet, and caches are cold.
void play(page& p, contestant& c, const holding& hold, int turns) {
    new (&p) page{};
    p.turns = turns + 2;
    p.until_ns = bench::now_ns() + 10'000'000'000;
    const auto one = [&] {
        const auto w = c.make();
        take_turns(p, *w, hold);
    };
    bench::child first(one);
    bench::wait_until("the first one has it", [&] { return p.owner != 0; });
    bench::child second(one);
    first.reap();
    second.reap();
    const int taken = std::min<int>(p.taken, p.turns);
    if (taken < 10) throw std::runtime_error("ten seconds are not enough for ten turns");
    c.latency_us.insert(c.latency_us.end(), p.latency_us.begin() + 2, p.latency_us.begin() + taken);
    c.turn_us.push_back(bench::microseconds_between(p.first_ns, p.last_ns) / (p.taken - 2));
}

void measure(const bench::setting& here, bench::table& results) {
    auto& p = bench::shared_page<page>();
    contestant polling{[&] { return std::make_unique<with_polling>(here / "polled"); }};
    contestant kernel{[&] { return std::make_unique<with_flock>(here / "flock"); }};
    contestant ours{[&] { return std::make_unique<with_fslock>(here / "lock"); }};
    contestant kernel_short = {kernel.make};
    contestant ours_short = {ours.make};
    const int rounds = here.count(30, 12);
    std::vector<double> slower;
    for (int round = 0; round < rounds; ++round) {
        play(p, kernel_short, hold_half_a_millisecond, here.count(130, 60));
        play(p, ours_short, hold_half_a_millisecond, here.count(130, 60));
        slower.push_back(ours_short.turn_us.back() / kernel_short.turn_us.back());
        if (round % 3 != 0) continue;
        play(p, polling, hold_at_random, 12);
        play(p, kernel, hold_at_random, here.count(32, 12));
        play(p, ours, hold_at_random, here.count(32, 12));
    }
    const double cold_us = bench::median(kernel.latency_us);
    const double flock_us = bench::median(kernel_short.latency_us);
    const double ours_us = bench::median(ours_short.latency_us);
    const double gain = bench::median(polling.latency_us) / ours_us;
    results.note(bench::text("release to wake-up of a process that is asleep, held 500 us: %zu samples",
                             ours_short.latency_us.size()));
    results.add(bench::times("blocking flock(2)", kernel_short.latency_us, flock_us));
    results.add(
        bench::times("async_acquire", ours_short.latency_us, flock_us, {{"median < 100 us", ours_us < 100}}));
    results.note(
        bench::text("the same, held 2 to 102 ms at random, so that processors and caches have gone to sleep: "
                    "%zu, %zu and %zu samples",
                    kernel.latency_us.size(), ours.latency_us.size(), polling.latency_us.size()));
    results.add(bench::times("blocking flock(2)", kernel.latency_us, cold_us));
    results.add(bench::times("async_acquire", ours.latency_us, cold_us));
    results.add(bench::times("async_try_acquire_once every 100 ms, by hand", polling.latency_us, cold_us));
    results.add(
        {"  that, to async_acquire held 500 us", "", "", bench::ratio_text(gain), {{">= 500 x", gain >= 500}}});
    const double flock_turn = bench::median(kernel_short.turn_us);
    const double ratio = bench::median(slower);
    results.note(
        bench::text("strictly in turns, held 500 us: time of a turn, of %d rounds; the ratio is the median of "
                    "the rounds'",
                    rounds));
    results.add(bench::times("blocking flock(2), a turn", kernel_short.turn_us, flock_turn));
    auto turn =
        bench::times("async_acquire, a turn", ours_short.turn_us, flock_turn, {{"< 1.15 x", ratio < 1.15}});
    turn.ratio = bench::ratio_text(ratio);
    results.add(turn);
}

}  // namespace

int main(int argc, char** argv) {
    return bench::run(argc, argv, "handover", measure);
}
