// Processes and their coroutines contend for locks, beside what people would use instead: the same work on the
// same filesystem, in turns. Every match checks that no two of them own a lock at once.
#include <unistd.h>

#include <charconv>

#include "contention_report.hpp"

namespace {

using namespace std::chrono_literals;

// ---- what is asked for -----------------------------------------------------------------------------------

struct wanted {
    std::vector<std::string> peers;  ///< parts of names; none: all
    bench::workload load;
    bool own_load = false;  ///< `load` instead of the usual ones
    double seconds = 0;     ///< of one match; 0: the usual
    int rounds = 0;         ///< 0: the usual
} asked;

double number(const std::string& text) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < 0)
        throw std::invalid_argument("not a number: " + text);
    return value;
}

bool take_option(std::string_view name, const std::string& value) {
    auto& w = asked.load;
    const auto count = [&] { return static_cast<int>(number(value)); };
    const auto time = [&] { return std::chrono::microseconds(static_cast<std::int64_t>(number(value))); };
    if (name == "seconds") {
        asked.seconds = number(value);
    } else if (name == "rounds") {
        asked.rounds = count();
    } else if (name == "peers") {
        for (std::size_t at = 0; at <= value.size();) {
            const auto end = std::min(value.find(',', at), value.size());
            asked.peers.push_back(value.substr(at, end - at));
            at = end + 1;
        }
    } else {
        asked.own_load = true;
        if (name == "processes") {
            w.processes = std::max(count(), 1);
        } else if (name == "coroutines") {
            w.coroutines = std::max(count(), 1);
        } else if (name == "locks") {
            w.locks = std::max(count(), 1);
        } else if (name == "held-us") {
            w.held = time();
        } else if (name == "think-us") {
            w.think = time();
        } else if (name == "kills") {
            w.kills = number(value);
        } else {
            return false;
        }
    }
    return true;
}

std::string described(const bench::workload& w) {
    auto line = bench::text("%d processes x %d coroutines x %d locks, held %.0f us, pause %.0f us", w.processes,
                            w.coroutines, w.locks, static_cast<double>(w.held.count()),
                            static_cast<double>(w.think.count()));
    if (w.greedy) line += ", the first one without pause";
    if (w.kills > 0) line += bench::text(", %.3g owners killed a second", w.kills);
    return line;
}

std::vector<bench::workload> workloads(bool quick) {
    if (asked.own_load) {
        asked.load.name = "as asked";
        return {asked.load};
    }
    std::vector<bench::workload> all = {{"held", 8, 1, 1, 1ms, 0us, 0, false},
                                        {"held for no time", 8, 1, 1, 0us, 0us, 0, false},
                                        {"one is greedy", 8, 1, 1, 0us, 1ms, 0, true},
                                        {"killed", 4, 1, 1, 1ms, 0us, 10, false}};
    if (!quick) all.push_back({"many of each", 4, 50, 20, 100us, 1ms, 0, false});
    return all;
}

bool is_wanted(const bench::peer& p) {
    const auto is_part = [&](const std::string& part) { return p.name.find(part) != std::string::npos; };
    return asked.peers.empty() || std::any_of(asked.peers.begin(), asked.peers.end(), is_part);
}

// ---- what is seen ----------------------------------------------------------------------------------------

/// What is going on, on stderr: rewritten in place on a terminal, else a line for each match.
class progress {
 public:
    void begin(const std::string& line, std::chrono::milliseconds time) {
        line_ = line;
        ends_ns_ = bench::now_ns() + std::chrono::nanoseconds(time).count();
        if (!terminal_) (void)std::fprintf(stderr, "%s\n", line.c_str());
    }
    void tick() const {
        const double left = bench::microseconds_between(bench::now_ns(), ends_ns_) / 1e6;
        if (terminal_)
            (void)std::fprintf(stderr, "\r\033[K%s, %.1f s to go", line_.c_str(), std::max(left, 0.0));
    }
    void end() const {
        if (terminal_) (void)std::fprintf(stderr, "\r\033[K");
    }

 private:
    const bool terminal_ = ::isatty(STDERR_FILENO) == 1;
    std::string line_;
    std::int64_t ends_ns_ = 0;
};

// ---- what is done ----------------------------------------------------------------------------------------

struct effort {
    std::chrono::milliseconds time;
    int rounds;
    bool counts_calls;
};

std::vector<bench::entry> play(const bench::setting& here, bench::arena& a, const bench::workload& w,
                               const effort& how) {
    std::vector<bench::entry> entries;
    for (const auto& p : bench::all_peers())
        if (is_wanted(p)) entries.push_back({p, bench::match::why_not(w, p)});
    progress seen;
    int number = 0;
    const auto start = [&](const bench::entry& e) {
        const auto directory = here / (w.name + std::to_string(++number));
        return std::make_unique<bench::match>(a, w, e.who, directory);
    };
    const auto check = [&](const bench::entry& e) {
        if (a.overlaps != 0) throw std::runtime_error(e.who.name + ": two owners at once");
    };
    for (int round = 0; round < how.rounds; ++round) {
        for (auto& e : entries) {
            if (!e.skipped.empty()) continue;
            seen.begin(w.name + bench::text(", round %d of %d: ", round + 1, how.rounds) + e.who.name,
                       how.time);
            e.note(start(e)->run(how.time, [&] { seen.tick(); }));
            a.waits.visit([&](double us, std::uint64_t n) { e.waits[us] += n; });
            check(e);
        }
    }
    for (auto& e : entries) {
        if (!how.counts_calls || !e.skipped.empty() || w.kills > 0) continue;
        seen.begin(w.name + ", counting system calls: " + e.who.name, 1s);
        bench::outcome o;
        o.fill(std::nan(""));
        o[bench::calls_each] = start(e)->count_calls(1s);
        e.note(o);
        check(e);
    }
    seen.end();
    return entries;
}

void judge(bench::table& results, const bench::workload& w, const std::vector<bench::entry>& entries) {
    const bench::entry* const ours = entries.empty() || entries.front().who.make ? nullptr : &entries.front();
    if (asked.own_load || ours == nullptr || w.kills > 0 || w.coroutines > 1) return;
    const double uneven = ours->most(bench::mean_to_least);
    const double longest_us = ours->most(bench::wait_most);
    results.add({"fslock, " + w.name + ": mean to least acquisitions",
                 "",
                 "",
                 bench::ratio_text(uneven),
                 {{"nobody starves: <= 10 x", uneven <= 10}}});
    results.add({"fslock, " + w.name + ": longest wait",
                 bench::time_text(longest_us),
                 "",
                 "",
                 {{"< 1 s", longest_us < 1e6}}});
}

void measure(const bench::setting& here, bench::table& results) {
    effort how{std::chrono::milliseconds(here.count(1500, 750)), here.count(5, 2), !here.quick};
    if (asked.seconds > 0) how.time = std::chrono::milliseconds(static_cast<std::int64_t>(asked.seconds * 1e3));
    if (asked.rounds > 0) how.rounds = asked.rounds;
    auto& a = bench::shared_page<bench::arena>();
    bench::json j;
    j.open('{');
    bench::add_machine(j);
    j.add("seconds", static_cast<double>(how.time.count()) / 1e3)
        .add("rounds", how.rounds)
        .open('[', "workloads");
    results.note(
        bench::text("medians of %d rounds of %.2f s, in turns; who waits still at the end has waited for "
                    "that long; memory is of one contender",
                    how.rounds, static_cast<double>(how.time.count()) / 1e3));
    for (const auto& w : workloads(here.quick)) {
        results.note(w.name + ": " + described(w));
        const auto entries = play(here, a, w, how);
        bench::print(entries);
        judge(results, w, entries);
        bench::save(j, w, entries);
        bench::save_waits(w, entries, here.tables);
    }
    j.close().close().save(here.json);
}

}  // namespace

int main(int argc, char** argv) {
    return bench::run(argc, argv, "contention", measure, take_option);
}
