// What the benchmarks share: time and its order statistics, the table, where and how long to measure.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <functional>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace bench {

// ---- time ------------------------------------------------------------------------------------------------

/// CLOCK_MONOTONIC, which all processes read alike.
[[nodiscard]] inline std::int64_t now_ns() {
    return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

[[nodiscard]] inline double microseconds_between(std::int64_t from_ns, std::int64_t to_ns) {
    return static_cast<double>(to_ns - from_ns) / 1e3;
}

/// The smallest sample that at least `share` of all do not exceed. REQUIRES: there is one.
[[nodiscard]] inline double percentile(std::vector<double> samples, double share) {
    const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(samples.size())));
    const auto at = samples.begin() + static_cast<std::ptrdiff_t>(std::max<std::size_t>(rank, 1) - 1);
    std::nth_element(samples.begin(), at, samples.end());
    return *at;
}

[[nodiscard]] inline double median(std::vector<double> samples) {
    return percentile(std::move(samples), 0.5);
}

inline void sleep_for(std::chrono::nanoseconds time) {
    std::this_thread::sleep_for(time);
}

/// A time between `least` and `most`, so that nothing marches in step with a poll.
[[nodiscard]] inline std::chrono::microseconds at_random(std::chrono::microseconds least,
                                                         std::chrono::microseconds most) {
    static std::minstd_rand source(std::random_device{}());
    return std::chrono::microseconds(
        std::uniform_int_distribution<std::int64_t>(least.count(), most.count())(source));
}

[[noreturn]] inline void fail(const std::string& what) {
    throw std::system_error(errno, std::system_category(), what);
}

/// Waits until `reached()` is true; throws when that takes longer than two minutes, or a child fails.
template <class Condition>
void wait_until(const char* what, Condition reached,
                std::chrono::microseconds nap = std::chrono::microseconds(100)) {
    const auto patience = std::chrono::steady_clock::now() + std::chrono::minutes(2);
    while (!reached()) {
        if (std::chrono::steady_clock::now() > patience)
            throw std::runtime_error(std::string("in vain: ") + what);
        sleep_for(nap);
    }
}

// ---- the table -------------------------------------------------------------------------------------------

[[nodiscard]] [[gnu::format(printf, 1, 2)]] inline std::string text(const char* format, ...) {
    char line[256];
    va_list arguments;
    va_start(arguments, format);
    (void)std::vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    return line;
}

[[nodiscard]] inline std::string time_text(double us) {
    if (us < 1e3) return text("%.1f us", us);
    if (us < 1e6) return text("%.2f ms", us / 1e3);
    return text("%.2f s", us / 1e6);
}

[[nodiscard]] inline std::string ratio_text(double ratio) {
    return text(ratio < 100 ? "%.2f x" : "%.0f x", ratio);
}

struct bound {
    std::string text;
    bool kept = true;
};

struct row {
    std::string what;
    std::string measured;  ///< a median, where there are many samples
    std::string p99;
    std::string ratio;
    std::vector<bound> bounds = {};
};

[[nodiscard]] inline row times(std::string what, const std::vector<double>& us, double reference_us,
                               std::vector<bound> bounds = {}) {
    const double middle = median(us);
    return {std::move(what), time_text(middle), time_text(percentile(us, 0.99)),
            ratio_text(middle / reference_us), std::move(bounds)};
}

/// Prints its rows as they come.
class table {
 public:
    explicit table(const std::string& title) {
        (void)std::printf("%s\n", title.c_str());
        print("", "measured", "p99", "ratio", "bound", "");
    }

    void add(const row& r) {
        std::string bounds;
        bool kept = true;
        for (const auto& b : r.bounds) {
            bounds += (bounds.empty() ? "" : ", ") + b.text;
            kept = kept && b.kept;
        }
        const char* const verdict = r.bounds.empty() ? "-" : kept ? "pass" : "FAIL";
        print(r.what, r.measured, or_dash(r.p99), or_dash(r.ratio), or_dash(bounds), verdict);
        failed_ = failed_ || !kept;
    }

    /// What has to be known to read the rows.
    void note(const std::string& line) { (void)std::printf("  (%s)\n", line.c_str()); }

    [[nodiscard]] bool failed() const noexcept { return failed_; }

 private:
    static std::string or_dash(const std::string& s) { return s.empty() ? "-" : s; }
    static void print(const std::string& what, const std::string& measured, const std::string& p99,
                      const std::string& ratio, const std::string& bounds, const char* verdict) {
        (void)std::printf("  %-52s %12s %12s %10s   %-34s %s\n", what.c_str(), measured.c_str(), p99.c_str(),
                          ratio.c_str(), bounds.c_str(), verdict);
        (void)std::fflush(stdout);
    }

    bool failed_ = false;
};

// ---- programs --------------------------------------------------------------------------------------------

/// Takes `--name value`, and says whether it knows that name.
using more_options = std::function<bool(std::string_view name, const std::string& value)>;

/// A fresh directory, removed at the end, and how long to measure in it.
class setting {
 public:
    setting(int argc, char** argv, const more_options& more, std::string base) {
        for (int i = 1; i < argc; ++i) {
            const std::string_view word = argv[i];
            if (word == "--quick") {
                quick = true;
            } else if (!word.starts_with("--")) {
                base = word;
            } else if (i + 1 == argc) {
                throw std::invalid_argument(std::string(word) + " needs a value");
            } else if (const std::string value = argv[++i]; word == "--json") {
                json = value;
            } else if (word == "--tables") {
                tables = value;
            } else if (!more || !more(word.substr(2), value)) {
                throw std::invalid_argument("unknown: " + std::string(word));
            }
        }
        if (!tables.empty()) std::filesystem::create_directories(tables);
        std::string name = (std::filesystem::path(base) / "fslock-bench-XXXXXX").native();
        if (::mkdtemp(name.data()) == nullptr) fail(name);
        directory = name;
    }
    setting(const setting&) = delete;
    setting& operator=(const setting&) = delete;
    ~setting() {
        std::error_code ignored;
        std::filesystem::remove_all(directory, ignored);
    }

    [[nodiscard]] std::filesystem::path operator/(const std::string& name) const { return directory / name; }
    /// `full`, or less of it with `--quick`.
    [[nodiscard]] int count(int full, int quick_count) const { return quick ? quick_count : full; }

    std::filesystem::path directory;
    bool quick = false;
    std::filesystem::path json;    ///< the file to write the results to; empty: none
    std::filesystem::path tables;  ///< the directory for what is drawn from; empty: none
};

/// Where what a filesystem on disk did before does not show in what it takes to make a file.
[[nodiscard]] inline const char* in_memory() {
    return ::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
}

/// PROGRAM [DIRECTORY] [--quick] [--NAME VALUE]...; without a directory, in `base`. The status says whether all
/// bounds were kept.
inline int run(int argc, char** argv, const char* title, void (*measure)(const setting&, table&),
               const more_options& more = {}, const char* base = "/tmp") {
    try {
        const setting here(argc, argv, more, base);
        table results(std::string(title) + ", in " + here.directory.native() + (here.quick ? ", quick" : ""));
        measure(here, results);
        return results.failed() ? 1 : 0;
    } catch (const std::exception& e) {
        (void)std::fprintf(stderr, "%s: %s\n", argv[0], e.what());
        return 1;
    }
}

}  // namespace bench
