// Every interleaving of two contenders, one of whom may die after any step.
#include <boost/test/unit_test.hpp>

#include <memory>
#include <unordered_set>

#include "core/contend.hpp"
#include "core/holder.hpp"
#include "core/record.hpp"
#include "support/simulation.hpp"

namespace {

using namespace fslock;
using support::sim_kernel;
using support::sim_process;

constexpr std::int64_t second = 1'000'000'000;

struct silent final : core::reporter {
    void report(event) override {}
};

enum class part { contending, owning, ended };

/// A process that gets the lock, works under it, gives it back, and does so again.
struct contender_process {
    contender_process(sim_kernel& k, int pid, int rounds, int patience) : process(k, pid), rounds_(rounds) {
        process.patience = patience;
        where.where = std::make_shared<core::directory>("/d", os::directory_facts{{}, os::fs_class::local});
        (void)core::split("/d/x", where.lock);
        run = work();
        run.resume();
    }

    core::task<int> work() {
        for (int i = 0; i < rounds_; ++i) {
            core::contender c(process, where, opts, process, nobody, seen);
            now = part::contending;
            const auto out = co_await core::contend(c, false);
            if (out.error) failure = out.error;
            if (out.how != core::ending::owned) break;
            ++won;
            core::holder h(where, std::move(c.mine), process.now());
            now = part::owning;
            const auto mine = co_await h.verify(process);  // the work: a step at which the lock must be ours
            if (mine.now != core::standing::ours) lost = true;
            now = part::ended;
            (void)co_await h.release(c);
        }
        now = part::ended;
        co_return won;
    }

    [[nodiscard]] bool owns() const { return now == part::owning && !process.dead(); }
    void die() {
        process.die();
        run = {};
    }

    sim_process process;
    core::place where;
    options opts;
    silent nobody;
    core::sightings seen;
    part now = part::contending;
    int won = 0;
    bool lost = false;
    std::error_code failure;
    core::task<int> run;

 private:
    const int rounds_;
};

/// What to do at one point of a schedule: 0 and 1, the process that makes a step; 2 and 3, the one that dies.
using choice = unsigned char;
using schedule = std::vector<choice>;

struct scenario {
    const char* name;
    void (*prepare)(sim_kernel&);
    int patience = 3;
};

/// One run, made again from the beginning for every schedule, since coroutines cannot be copied.
struct run {
    run(const scenario& s, int rounds) {
        s.prepare(kernel);
        for (int i = 0; i < 2; ++i)
            who.push_back(std::make_unique<contender_process>(kernel, 100 + i, rounds, s.patience));
    }

    void take(choice c) {
        auto& p = *who[c % 2];
        if (c >= 2) {
            p.die();
        } else {
            p.process.step();
        }
    }

    [[nodiscard]] std::vector<choice> choices() const {
        std::vector<choice> all;
        for (choice i = 0; i < 2; ++i)
            if (who[i]->process.waits()) all.push_back(i);
        const bool somebody_died = who[0]->process.dead() || who[1]->process.dead();
        for (choice i = 0; i < 2 && !somebody_died; ++i)
            if (who[i]->process.waits()) all.push_back(static_cast<choice>(i + 2));
        return all;
    }

    [[nodiscard]] std::uint64_t state() const {
        support::digest d;
        d.add(kernel.state());
        for (const auto& p : who) {
            d.add(p->process.history());
            d.add(static_cast<std::uint64_t>(p->process.dead()) << 16 | static_cast<std::uint64_t>(p->now) << 8 |
                  static_cast<std::uint64_t>(p->won));
        }
        return d.value;
    }

    sim_kernel kernel;
    std::vector<std::unique_ptr<contender_process>> who;
};

std::string told(const scenario& s, int rounds, const schedule& steps) {
    run r(s, rounds);
    std::string text = s.name;
    for (const auto c : steps) {
        text += "\n  " + std::to_string(c % 2) + (c >= 2 ? " dies" : " " + r.who[c]->process.next());
        r.take(c);
    }
    return text;
}

core::record record_of(int pid, bool ours) {
    core::record r;
    r.pid = pid;
    r.hostname = "sim";
    r.boot_id = "boot";
    r.process_start_time = static_cast<std::uint64_t>(pid);
    r.created_at_ms = r.heartbeat_at_ms = 1'600'000'000'000;
    r.writer_epoch = std::to_string(pid) + "-1600000000000000000";
    if (ours) {
        r.pid_ns = 1;
        r.guard = os::witness_kind::ofd;
        r.heartbeat_ms = 5000;
    }
    return r;
}

/// What stands at the token's name in some scenarios. Who gets a free lock does not look there.
const std::string dead_token = core::format(record_of(50, true));

/// "" or what is wrong.
std::string broken(const run& r) {
    if (r.who[0]->owns() && r.who[1]->owns()) return "two owners";
    for (const auto& p : r.who) {
        if (p->lost && !p->process.dead()) return "an owner lost its lock to the other";
        if (p->failure) return "an error: " + p->failure.message();
    }
    return {};
}

/// When nobody can step any more: nothing is left behind, and a newcomer gets the lock, after a grace at most.
std::string left_behind(run& r) {
    const bool died = r.who[0]->process.dead() || r.who[1]->process.dead();
    const bool gave_up = r.who[0]->process.patience == 0 || r.who[1]->process.patience == 0;
    if (!died && !gave_up)
        for (const auto& [name, inode] : r.kernel.names)
            if (r.kernel.inodes.at(inode).content != dead_token) return name + " is left behind";
    r.kernel.clock_runs = true;
    contender_process newcomer(r.kernel, 200, 1, 100);
    for (int i = 0; i < 5000 && newcomer.process.waits(); ++i) newcomer.process.step();
    if (newcomer.won != 1) return "a newcomer does not get the lock";
    return {};
}

struct totals {
    std::size_t states = 0;
    std::size_t schedules = 0;
    std::size_t won = 0;
};

totals explore(const scenario& s, int rounds) {
    totals t;
    std::unordered_set<std::uint64_t> known;
    std::vector<schedule> open{{}};
    while (!open.empty()) {
        auto steps = std::move(open.back());
        open.pop_back();
        run r(s, rounds);
        for (const auto c : steps) r.take(c);
        // On along the first choice for as long as that leads to anything new; the others are for later.
        for (;;) {
            if (const auto wrong = broken(r); !wrong.empty()) {
                BOOST_ERROR(wrong << "\n" << told(s, rounds, steps));
                return t;
            }
            if (!known.insert(r.state()).second) break;
            ++t.states;
            const auto choices = r.choices();
            if (choices.empty()) {
                ++t.schedules;
                t.won += static_cast<std::size_t>(r.who[0]->won + r.who[1]->won);
                if (const auto wrong = left_behind(r); !wrong.empty()) {
                    BOOST_ERROR(wrong << "\n" << told(s, rounds, steps));
                    return t;
                }
                break;
            }
            for (std::size_t i = 1; i < choices.size(); ++i) {
                open.push_back(steps);
                open.back().push_back(choices[i]);
            }
            steps.push_back(choices[0]);
            r.take(choices[0]);
        }
    }
    return t;
}

void put_dead(sim_kernel& k, const char* path, bool ours) {
    k.put(path, core::format(record_of(ours ? 50 : 51, ours)), 3600 * second);
}

const scenario scenarios[] = {
    {"free", [](sim_kernel&) {}},
    {"a dead owner", [](sim_kernel& k) { put_dead(k, "/d/x", true); }},
    {"a dead owner and a dead token",
     [](sim_kernel& k) {
         put_dead(k, "/d/x", true);
         put_dead(k, "/d/.x.reclaim", true);
     }},
    {"a dead token alone", [](sim_kernel& k) { put_dead(k, "/d/.x.reclaim", true); }},
    {"a dead owner of the first implementation", [](sim_kernel& k) { put_dead(k, "/d/x", false); }},
    {"that, and its token",
     [](sim_kernel& k) {
         put_dead(k, "/d/x", false);
         put_dead(k, "/d/.x.reclaim", false);
     }},
    {"a damaged record", [](sim_kernel& k) { k.put("/d/x", "", 3600 * second); }},
    {"named temps only", [](sim_kernel& k) { k.unnamed_files = false; }},
    {"created in place",
     [](sim_kernel& k) {
         k.unnamed_files = false;
         k.hard_links = false;
         k.records_change = true;
     }, 1},
    {"created in place, a dead owner before",
     [](sim_kernel& k) {
         k.unnamed_files = false;
         k.hard_links = false;
         k.records_change = true;
         put_dead(k, "/d/x", true);
     }, 0},
};

}  // namespace

BOOST_AUTO_TEST_CASE(no_interleaving_of_two_contenders_has_two_owners_or_leaves_anything_behind) {
    for (const auto& s : scenarios) {
        const auto t = explore(s, 1);
        BOOST_TEST(t.won > t.schedules / 4, s.name);
        BOOST_TEST_MESSAGE(s.name << ": " << t.states << " states, " << t.schedules << " ends");
    }
}
