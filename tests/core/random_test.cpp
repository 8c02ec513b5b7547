// Many contenders on one to three hosts, in random runs that a number reproduces: FSLOCK_SEED=n makes that run alone,
// FSLOCK_RANDOM_SECONDS says for how long new ones are made (20).
//
// Asserted at every step: at most one process believes to own the lock and rightly does; no owner loses its record; on
// one host, an owner has a record. At the end: nothing is left behind where nobody died, and a newcomer gets the lock.
//
// One host with a local filesystem: processes die and stop, for hours, at any step; the machine is suspended; clocks
// jump. Everything above holds. Several hosts on a shared one: the same, but what happens between two sleeps of a
// process takes less than the settle time (docs/protocol.md, "What remains possible", shows what can happen otherwise).
// So a process is stopped for longer only while it sleeps, and an owner that has not beaten for `foreign_stale_after`
// counts as none.
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <random>

#include "core/reclaim.hpp"
#include "support/actors.hpp"

namespace {

using namespace support;
using support::sim_reply;

constexpr std::int64_t millisecond = 1'000'000;

/// One run, made from a number.
class random_run {
 public:
    explicit random_run(std::uint64_t seed) : chance_(seed) {
        shared_ = one_in(2);
        at_.disk.kind = shared_ ? os::fs_class::shared : os::fs_class::local;
        at_.disk.clock_runs = true;
        at_.disk.records_change = true;
        at_.disk.unnamed_files = !one_in(3);
        at_.disk.hard_links = !one_in(5);
        at_.disk.exclusive_rename = one_in(2);
        at_.somebody_must_win = false;
        if (shared_) add_hosts();
        disturbed_ = one_in(2);
        server_clock_jumps_ = one_in(2);
        put_something();
        for (auto n = between(3, 6); n > 0; --n) add_contender();
    }

    /// "" or what is wrong.
    std::string go() {
        for (int i = 0; i < 20'000; ++i) {
            const auto next = std::min_element(due_.begin(), due_.end()) - due_.begin();
            if (due_[static_cast<std::size_t>(next)] == never) break;
            step(static_cast<std::size_t>(next));
            ++steps_;
            if (auto wrong = at_.broken(); !wrong.empty()) return wrong;
        }
        at_.disk.cache_ns = 0;
        for (const auto& a : at_.actors) won_ += a->won;
        return at_.wrong_at_the_end();
    }

    [[nodiscard]] std::uint64_t steps() const noexcept { return steps_; }
    [[nodiscard]] int won() const noexcept { return won_; }
    [[nodiscard]] const std::vector<std::string>& story() const noexcept { return story_; }

 private:
    static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

    std::int64_t between(std::int64_t low, std::int64_t high) {
        return std::uniform_int_distribution<std::int64_t>(low, high)(chance_);
    }
    bool one_in(int n) { return between(1, n) == 1; }

    void add_hosts() {
        for (auto n = between(1, 2); n > 0; --n) at_.add_host("host" + std::to_string(n));
        for (auto& h : at_.hosts) h.skew_ns = between(-3600 * one_second, 3600 * one_second);
        at_.disk.skew_ns = between(-3600, 3600) * one_second;
        if (one_in(2)) at_.disk.cache_ns = between(1, 3000) * millisecond;
    }

    void put_something() {
        const auto& host = at_.hosts[static_cast<std::size_t>(between(0, static_cast<std::int64_t>(at_.hosts.size()) - 1))];
        const auto by = shared_ ? writer::ours_without_witness : writer::ours;
        const auto age = between(0, 200) * one_second;
        if (one_in(2)) at_.disk.put(lock_path, one_in(6) ? std::string() : record_text(50, host, by), age);
        if (one_in(3)) {
            at_.stays = record_text(50, host, by);
            at_.disk.put(token_path, at_.stays, age);
        }
    }

    void add_contender() {
        const auto host = between(0, static_cast<std::int64_t>(at_.hosts.size()) - 1);
        // The same numbers on all hosts.
        const auto there = std::count_if(at_.actors.begin(), at_.actors.end(), [&](const auto& a) {
            return a->process.host().number == host;
        });
        auto& a = at_.add(static_cast<int>(host), 100 + static_cast<int>(there));
        a.process.patience = static_cast<int>(between(50, 400));
        a.process.chance = [this] { return static_cast<std::uint32_t>(between(0, 0xFFFF'FFFF)); };
        a.opts.poll_interval = core::milliseconds(between(50, 5'000));
        a.turns = static_cast<int>(between(1, 4));
        a.beats = static_cast<int>(between(0, 3));
        a.nap = core::milliseconds(between(1, 5'000));
        a.start(takes_turns);
        due_.push_back(at_.disk.now_ns + between(0, 3'000) * millisecond);
        budget_.push_back(new_budget());
    }

    /// How long a process may take from one sleep to the next.
    std::int64_t new_budget() const {
        if (!shared_) return never;
        return std::chrono::nanoseconds(core::settle_time(os::fs_class::shared)).count() * 9 / 10;
    }

    void tell(std::size_t who, const std::string& what) {
        const auto& p = at_.actors[who]->process;
        story_.push_back(std::to_string(at_.disk.now_ns / millisecond % 10'000'000) + " ms, " + p.host().name + ' ' +
                         std::to_string(p.pid()) + ' ' + what);
    }

    void step(std::size_t i) {
        auto& a = *at_.actors[i];
        auto& p = a.process;
        at_.disk.now_ns = std::max(at_.disk.now_ns, due_[i]);
        if (disturbed_ && one_in(60) && disturb(i)) return;
        tell(i, p.next());
        const bool slept = p.wakes_at().has_value();
        if (slept) budget_[i] = new_budget();
        p.step(shared_ && at_.disk.exclusive_rename && p.claims() ? lost_reply() : sim_reply::truth);
        if (!p.waits()) {
            due_[i] = never;
        } else if (const auto wakes = p.wakes_at()) {
            due_[i] = std::max(*wakes, at_.disk.now_ns) + between(0, 200'000);
        } else {
            delay(i, one_in(20) ? between(0, 400 * millisecond) : between(1'000, 2 * millisecond));
        }
    }

    /// Only where a file that was moved aside can be put back in another way, too: a link that fails is no reason to try
    /// again there.
    sim_reply lost_reply() {
        if (!one_in(15)) return sim_reply::truth;
        return one_in(2) ? sim_reply::io_error : sim_reply::exists;
    }

    /// On a shared filesystem only for what is left until it has to sleep.
    void delay(std::size_t i, std::int64_t time) {
        if (shared_) {
            time = std::min(time, budget_[i]);
            budget_[i] -= time;
        }
        due_[i] = at_.disk.now_ns + time;
    }

    /// Whether that kept the process from its step.
    bool disturb(std::size_t i) {
        auto& p = at_.actors[i]->process;
        switch (between(0, 4)) {
            case 0:
                tell(i, "dies");
                at_.actors[i]->die();
                due_[i] = never;
                if (at_.actors.size() < 12) add_contender();
                return true;
            case 1: {
                if (shared_ && (!p.wakes_at() || server_clock_jumps_)) return false;
                const auto time = between(1, 200) * one_second;
                tell(i, "is stopped for " + std::to_string(time / one_second) + " s");
                due_[i] = at_.disk.now_ns + time;
                return true;
            }
            case 2: return (!shared_ || !server_clock_jumps_) && suspend(p.host(), i);
            case 3: step_clock(i); return false;
            default: return false;
        }
    }

    bool suspend(sim_host& host, std::size_t who) {
        const auto on_host = [&](std::size_t i) { return &at_.actors[i]->process.host() == &host && due_[i] != never; };
        for (std::size_t i = 0; i < due_.size() && shared_; ++i)
            if (on_host(i) && !at_.actors[i]->process.wakes_at()) return false;
        const auto time = between(1, 200) * one_second;
        tell(who, "and all of its host are suspended for " + std::to_string(time / one_second) + " s");
        host.suspended_ns += time;
        for (std::size_t i = 0; i < due_.size(); ++i)
            if (on_host(i)) due_[i] += time;
        return true;
    }

    /// By less than an hour: whoever is silent for longer is dead without being watched. The clock of a shared
    /// filesystem only in runs in which nobody is stopped: of the silence that it measures, no more than
    /// `foreign_confirm` is true.
    void step_clock(std::size_t who) {
        const auto by = between(-1'200, 1'200) * one_second;
        const bool disk = (!shared_ || server_clock_jumps_) && one_in(2);
        tell(who, std::string(disk ? "and the clock of the filesystem" : "and its clock") + " jumps by " +
                      std::to_string(by / one_second) + " s");
        (disk ? at_.disk.skew_ns : at_.actors[who]->process.host().skew_ns) += by;
    }

    std::mt19937_64 chance_;
    site at_;
    std::vector<std::int64_t> due_;     ///< when each makes its next step
    std::vector<std::int64_t> budget_;
    std::vector<std::string> story_;
    std::uint64_t steps_ = 0;
    int won_ = 0;
    bool shared_ = false;
    bool disturbed_ = false;
    bool server_clock_jumps_ = false;
};

/// Whether all was well.
bool run(std::uint64_t seed, std::uint64_t& steps, std::uint64_t& won) {
    random_run r(seed);
    const auto wrong = r.go();
    steps += r.steps();
    won += static_cast<std::uint64_t>(r.won());
    if (wrong.empty()) return true;
    std::string text;
    const auto& story = r.story();
    for (std::size_t i = story.size() > 300 ? story.size() - 300 : 0; i < story.size(); ++i) text += "\n  " + story[i];
    BOOST_ERROR("FSLOCK_SEED=" << seed << ": " << wrong << text);
    return false;
}

std::optional<std::uint64_t> number_from(const char* name) {
    const char* const text = std::getenv(name);
    if (text == nullptr) return {};
    return std::strtoull(text, nullptr, 10);
}

}  // namespace

BOOST_AUTO_TEST_CASE(random_runs_break_no_promise) {
    std::uint64_t steps = 0;
    std::uint64_t won = 0;
    if (const auto seed = number_from("FSLOCK_SEED")) {
        BOOST_TEST(run(*seed, steps, won));
        return;
    }
    const auto first = number_from("FSLOCK_FIRST_SEED").value_or(std::uint64_t{std::random_device{}()} << 16);
    const auto until =
        std::chrono::steady_clock::now() + std::chrono::seconds(number_from("FSLOCK_RANDOM_SECONDS").value_or(20));
    auto seed = first;
    while (std::chrono::steady_clock::now() < until && run(seed, steps, won)) ++seed;
    BOOST_TEST_MESSAGE(seed - first << " runs from FSLOCK_SEED=" << first << " on, " << steps << " steps, " << won
                                    << " times owned");
    BOOST_TEST(won > seed - first);
}
