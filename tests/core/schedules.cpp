#include "schedules.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <string>
#include <unordered_map>

#include "core/reclaim.hpp"

namespace schedules {
namespace {

using support::digest;
using support::one_second;
using support::sim_reply;

enum class act : std::uint8_t { step, step_with_io_error, step_with_exists, die, stop };

struct choice {
    act what = act::step;
    std::uint8_t who = 0;
};

using schedule = std::vector<choice>;

constexpr std::int64_t long_stop = 7200 * one_second;
constexpr std::size_t nobody = 255;

/// One run, made again from the beginning for every schedule, since coroutines cannot be copied.
class run {
 public:
    explicit run(const scenario& s) : s_(s) {
        at.disk.clock_runs = s.timed;
        s.set_up(at);
        awake_since_.resize(at.actors.size(), at.disk.now_ns);
        stopped_.resize(at.actors.size(), false);
    }

    void take(choice c) {
        auto& p = at.actors[c.who]->process;
        switch (c.what) {
            case act::die:
                ++deaths_;
                at.actors[c.who]->die();
                return;
            case act::stop:
                ++stops_;
                if (s_.timed) stopped_[c.who] = true;
                else at.disk.now_ns += long_stop;
                return;
            default: break;
        }
        if (interrupts(c.who)) ++preemptions_;
        const bool slept = p.wakes_at().has_value();
        if (c.what != act::step) ++lost_replies_;
        stopped_[c.who] = false;
        p.step(c.what == act::step                 ? sim_reply::truth
               : c.what == act::step_with_io_error ? sim_reply::io_error
                                                   : sim_reply::exists);
        if (slept) awake_since_[c.who] = at.disk.now_ns;
        last_ = c.who;
    }

    /// The first is the one that interrupts nobody.
    [[nodiscard]] std::vector<choice> choices() const {
        std::vector<choice> all;
        if (last_ != nobody && may_step(last_)) add_steps(all, last_);
        for (std::size_t i = 0; i < at.actors.size(); ++i)
            if (i != last_ && may_step(i)) add_steps(all, i);
        for (std::size_t i = 0; i < at.actors.size(); ++i) {
            const auto& a = *at.actors[i];
            if (!a.process.waits()) continue;
            if (deaths_ < s_.deaths) all.push_back({act::die, static_cast<std::uint8_t>(i)});
            const bool can_stop = s_.timed ? !stopped_[i] && a.process.wakes_at().has_value() : i == first_waiting();
            if (stops_ < s_.stops && can_stop) all.push_back({act::stop, static_cast<std::uint8_t>(i)});
        }
        return all;
    }

    [[nodiscard]] std::uint64_t state() const {
        digest d;
        d.add(at.disk.state());
        for (std::size_t i = 0; i < at.actors.size(); ++i) {
            const auto& a = *at.actors[i];
            // Whoever has nothing more to do is what is to be seen of it.
            d.add(a.process.waits() ? a.process.history() : 0);
            d.add(static_cast<std::uint64_t>(a.process.dead()) << 24 | static_cast<std::uint64_t>(a.gave_up) << 20 |
                  static_cast<std::uint64_t>(a.broken) << 21 |
                  static_cast<std::uint64_t>(stopped_[i]) << 19 | static_cast<std::uint64_t>(a.won));
            if (s_.timed && is_awake(i)) d.add(static_cast<std::uint64_t>(awake_since_[i]));
        }
        d.add(static_cast<std::uint64_t>(deaths_ << 16 | stops_ << 8 | lost_replies_));
        if (s_.preemptions >= 0) d.add(last_);
        return d.value;
    }

    [[nodiscard]] int preemptions() const noexcept { return preemptions_; }

    site at;

 private:
    [[nodiscard]] bool is_awake(std::size_t i) const {
        const auto& p = at.actors[i]->process;
        return p.waits() && !p.wakes_at();
    }
    [[nodiscard]] bool interrupts(std::size_t i) const { return last_ != nobody && last_ != i && is_awake(last_); }
    [[nodiscard]] std::size_t first_waiting() const {
        std::size_t i = 0;
        while (!at.actors[i]->process.waits()) ++i;
        return i;
    }

    [[nodiscard]] bool may_step(std::size_t i) const {
        const auto& p = at.actors[i]->process;
        if (!p.waits()) return false;
        if (s_.preemptions >= 0 && preemptions_ >= s_.preemptions && interrupts(i)) return false;
        return !s_.timed || !p.wakes_at() || time_may_pass_until(i, *p.wakes_at());
    }

    void add_steps(std::vector<choice>& all, std::size_t i) const {
        const auto who = static_cast<std::uint8_t>(i);
        all.push_back({act::step, who});
        if (lost_replies_ >= s_.lost_replies) return;
        const auto& p = at.actors[i]->process;
        const bool looks = p.next() == "open " + support::lock_path;
        if (p.claims() || (looks && s_.failing_looks)) all.push_back({act::step_with_io_error, who});
        if (p.claims()) all.push_back({act::step_with_exists, who});
    }

    /// Whether nobody else would be kept from going on for too long.
    [[nodiscard]] bool time_may_pass_until(std::size_t sleeper, std::int64_t wakes_at) const {
        const auto settle = fslock::core::settle_time(at.disk.kind);
        const auto longest = std::chrono::duration_cast<std::chrono::nanoseconds>(settle).count() * 9 / 10;
        const auto then = std::max(at.disk.now_ns, wakes_at);
        for (std::size_t i = 0; i < at.actors.size(); ++i) {
            if (i == sleeper || stopped_[i] || !at.actors[i]->process.waits()) continue;
            const auto due = at.actors[i]->process.wakes_at();
            if (then - (due ? *due : awake_since_[i]) >= longest) return false;
        }
        return true;
    }

    const scenario& s_;
    std::vector<std::int64_t> awake_since_;
    std::vector<bool> stopped_;
    std::size_t last_ = nobody;
    int deaths_ = 0;
    int stops_ = 0;
    int lost_replies_ = 0;
    int preemptions_ = 0;
};

std::string told(const scenario& s, const schedule& steps) {
    run r(s);
    std::string text;
    for (const auto c : steps) {
        const auto& p = r.at.actors[c.who]->process;
        text += "\n  " + std::to_string(p.pid()) + ' ';
        switch (c.what) {
            case act::step: text += p.next(); break;
            case act::step_with_io_error: text += p.next() + ", told EIO"; break;
            case act::step_with_exists: text += p.next() + ", told EEXIST"; break;
            case act::die: text += "dies"; break;
            case act::stop: text += s.timed ? "is stopped" : "and all others stand still for two hours"; break;
        }
        r.take(c);
    }
    return text;
}

class exploration {
 public:
    explicit exploration(const scenario& s) : s_(s) {}

    totals all() {
        std::vector<schedule> open{{}};
        while (!open.empty() && !t_.failed) {
            auto steps = std::move(open.back());
            open.pop_back();
            run r(s_);
            for (const auto c : steps) r.take(c);
            follow(r, steps, open);
        }
        return t_;
    }

 private:
    /// On along the first choice for as long as that leads to anything new; the others are for later.
    void follow(run& r, schedule& steps, std::vector<schedule>& open) {
        for (;;) {
            if (fails(r.at.broken(), steps) || !is_new(r)) return;
            const auto choices = r.choices();
            if (choices.empty()) {
                ++t_.ends;
                for (const auto& a : r.at.actors) t_.won += static_cast<std::size_t>(a->won);
                (void)fails(r.at.wrong_at_the_end(), steps);
                return;
            }
            for (std::size_t i = 1; i < choices.size(); ++i) {
                open.push_back(steps);
                open.back().push_back(choices[i]);
            }
            steps.push_back(choices[0]);
            r.take(choices[0]);
        }
    }

    /// Also when it was reached with more interruptions before: then less could follow.
    bool is_new(const run& r) {
        const auto [at, added] = known_.try_emplace(r.state(), r.preemptions());
        t_.states += static_cast<std::size_t>(added);
        if (added) return true;
        if (s_.preemptions < 0 || at->second <= r.preemptions()) return false;
        at->second = r.preemptions();
        return true;
    }

    bool fails(const std::string& wrong, const schedule& steps) {
        if (wrong.empty()) return false;
        t_.failed = true;
        BOOST_ERROR(s_.name << ": " << wrong << told(s_, steps));
        return true;
    }

    const scenario& s_;
    totals t_;
    std::unordered_map<std::uint64_t, int> known_;
};

}  // namespace

totals explore(const scenario& s) {
    const auto t = exploration(s).all();
    BOOST_TEST_MESSAGE(s.name << ": " << t.states << " states, " << t.ends << " ends, " << t.won << " times owned");
    return t;
}

}  // namespace schedules
