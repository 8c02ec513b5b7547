// What a workload has shown of each peer: as a table, as JSON, and as what is drawn.
#pragma once

#include <map>

#include "arena.hpp"
#include "json.hpp"

namespace bench {

struct column {
    const char* key;    ///< in JSON; with its unit
    const char* title;  ///< empty: not in the table
    std::string (*text)(double);
};

inline const std::array<column, metrics> columns = {{
    {"acquisitions_per_second", "/s", [](double v) { return text("%.0f", v); }},
    {"wait_p50_us", "wait p50", time_text},
    {"wait_p90_us", "p90", time_text},
    {"wait_p99_us", "p99", time_text},
    {"wait_most_us", "longest", time_text},
    {"jain", "Jain", [](double v) { return text("%.3f", v); }},
    {"most_to_least", "max/min", [](double v) { return text("%.3g", v); }},
    {"mean_to_least", "", ratio_text},
    {"twice_in_a_row", "again", [](double v) { return text("%.0f %%", 100 * v); }},
    {"wakeup_p50_us", "wake-up", time_text},
    {"wakeup_p99_us", "", time_text},
    {"takeover_p50_us", "takeover", time_text},
    {"takeover_p99_us", "", time_text},
    {"cpu_us_per_acquisition", "CPU each", time_text},
    {"calls_per_acquisition", "calls", [](double v) { return text("%.1f", v); }},
    {"bytes_per_contender", "memory", [](double v) { return text("%.0f KiB", v / 1024); }},
}};

struct entry {
    peer who;
    std::string skipped = {};
    std::array<std::vector<double>, metrics> samples = {};  ///< by round; what was not measured is left out
    std::map<double, std::uint64_t> waits = {};             ///< by microseconds, of all rounds

    [[nodiscard]] double most(metric m) const {
        return samples[m].empty() ? std::nan("") : *std::max_element(samples[m].begin(), samples[m].end());
    }
    void note(const outcome& o) {
        for (std::size_t m = 0; m < o.size(); ++m)
            if (!std::isnan(o[m])) samples[m].push_back(o[m]);
    }
    /// How far the rounds are from the median at most, as a share of it.
    [[nodiscard]] std::string spread(std::size_t m) const {
        const auto [least, most] = std::minmax_element(samples[m].begin(), samples[m].end());
        if (!std::isfinite(*most) || *most == 0) return "";
        const double middle = median(samples[m]);
        return text("+-%.0f %%", 100 * std::max(*most - middle, middle - *least) / middle);
    }
};

inline void print_row(const std::string& name, const std::function<std::string(std::size_t)>& cell) {
    std::string line = text("  %-27s", name.c_str());
    for (std::size_t m = 0; m < columns.size(); ++m)
        if (*columns[m].title != '\0') line += text(" %9s", cell(m).c_str());
    (void)std::printf("%s\n", line.c_str());
}

inline void print(const std::vector<entry>& entries) {
    print_row("", [](std::size_t m) { return columns[m].title; });
    for (const auto& e : entries) {
        if (!e.skipped.empty()) {
            (void)std::printf("  %-27s skipped: %s\n", e.who.name.c_str(), e.skipped.c_str());
            continue;
        }
        print_row(e.who.name, [&](std::size_t m) {
            return e.samples[m].empty() ? "-" : columns[m].text(median(e.samples[m]));
        });
        if (e.samples[per_second].size() > 1)
            print_row("", [&](std::size_t m) { return e.samples[m].empty() ? "" : e.spread(m); });
    }
    (void)std::fflush(stdout);
}

inline void save(json& j, const workload& w, const std::vector<entry>& entries) {
    j.open('{').add("name", w.name).add("processes", w.processes).add("coroutines", w.coroutines);
    j.add("locks", w.locks).add("held_us", static_cast<double>(w.held.count()));
    j.add("think_us", static_cast<double>(w.think.count())).add("kills_per_second", w.kills).open('[', "peers");
    for (const auto& e : entries) {
        j.open('{').add("name", e.who.name);
        if (!e.skipped.empty()) j.add("skipped", e.skipped);
        for (std::size_t m = 0; m < columns.size(); ++m)
            if (!e.samples[m].empty()) j.add(columns[m].key, e.samples[m]);
        j.open('[', "waits_us");
        for (const auto& [us, n] : e.waits) j.open('[').add({}, us).add({}, static_cast<double>(n)).close();
        j.close().close();
    }
    j.close().close();
}

/// For each peer a block: its name and Jain's index, then microseconds and the share of waits that were not
/// longer.
inline void save_waits(const workload& w, const std::vector<entry>& entries,
                       const std::filesystem::path& tables) {
    if (tables.empty()) return;
    auto name = "waits-" + w.name + ".tsv";
    std::replace(name.begin(), name.end(), ' ', '-');
    std::ofstream out(tables / name);
    for (const auto& e : entries) {
        double all = 0;
        for (const auto& [us, n] : e.waits) all += static_cast<double>(n);
        if (all == 0) continue;
        out << '"' << e.who.name << text(", %.2f\"\n", median(e.samples[jain]));
        double seen = 0;
        for (const auto& [us, n] : e.waits) out << us << '\t' << (seen += static_cast<double>(n)) / all << '\n';
        out << "\n\n";
    }
}

}  // namespace bench
