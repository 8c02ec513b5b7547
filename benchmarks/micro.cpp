// What single operations cost, each beside the bare system calls of the same work, by Google Benchmark in
// random order: on the disk of the directory, and in memory.
#include <benchmark/benchmark.h>

#include <map>
#include <memory>

#include "core/claim.hpp"
#include "core/holder.hpp"
#include "core/record.hpp"
#include "cycles.hpp"
#include "os/posix_world.hpp"

namespace {

namespace core = fslock::core;
namespace os = fslock::os;
using path = std::filesystem::path;

// ---- what is measured ------------------------------------------------------------------------------------

/// A held lock as the protocol sees it.
class held {
 public:
    explicit held(const path& at) {
        auto& w = os::this_world();
        if (const auto error = core::split(at, where_.lock)) throw std::system_error(error);
        const auto facts = core::run_to_end(classify(at.parent_path()));
        if (facts.error()) throw std::system_error(facts.error());
        where_.where = std::make_shared<core::directory>(at.parent_path(), *facts);
        core::prepared mine;
        const fslock::options usual;
        mine.rec = core::own_record(w, usual, w.new_witness(), 0);
        const auto error = core::run_to_end(core::claim(w, where_, where_.path(), usual, mine, 0));
        if (error) throw std::system_error(error);
        holder_ = std::make_unique<core::holder>(where_, std::move(mine), w.now());
    }
    held(const held&) = delete;
    held& operator=(const held&) = delete;
    ~held() { (void)::unlink(where_.path().c_str()); }

    void beat() {
        if (core::run_to_end(holder_->beat(os::this_world())).now != core::standing::ours)
            bench::fail("a beat");
    }
    [[nodiscard]] const core::record& record() const { return holder_->rec(); }

 private:
    static core::task<os::result<os::directory_facts>> classify(std::string directory) {
        co_return co_await os::this_world().classify(directory);
    }

    core::place where_;
    std::unique_ptr<core::holder> holder_;
};

void look(const path& at) {
    struct stat there {};
    if (::lstat(at.c_str(), &there) != 0) bench::fail(at);
}

/// A file with a text as long as a record.
class plain_file {
 public:
    explicit plain_file(path at)
        : at_(std::move(at)), file_(::open(at_.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600)) {
        if (file_ < 0) bench::fail(at_);
        write();
    }
    plain_file(const plain_file&) = delete;
    plain_file& operator=(const plain_file&) = delete;
    ~plain_file() {
        (void)::close(file_);
        (void)::unlink(at_.c_str());
    }
    void write() const {
        const auto& text = bench::record_text;
        if (::pwrite(file_, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) bench::fail(at_);
    }
    void read() const {
        char text[core::record_limit];
        if (::pread(file_, text, sizeof text, 0) < 0) bench::fail(at_);
        benchmark::DoNotOptimize(text);
    }
    [[nodiscard]] const path& at() const { return at_; }

 private:
    const path at_;
    const int file_;
};

template <class Action>
void repeat(benchmark::State& state, Action action) {
    for (auto _ : state) action();
}

/// Cycles are run in lots, since a coroutine has to be started for them.
using cycles = void (*)(const path&, int);
constexpr int lot = 20;

void repeat_cycles(benchmark::State& state, cycles run, const path& at) {
    run(at, lot);
    while (state.KeepRunningBatch(lot)) run(at, lot);
}

// ---- the list --------------------------------------------------------------------------------------------

/// Its bare calls come first in a group.
struct item {
    std::string group;
    std::string name;
    std::function<void(benchmark::State&)> run;
};

std::vector<item> cycles_in(const path& at, const std::string& where) {
    const auto of = [at](cycles run) { return [at, run](benchmark::State& s) { repeat_cycles(s, run, at); }; };
    const auto relaxed = where + ", relaxed";
    const auto full = where + ", durability::full";
    return {
        {relaxed, "the six bare calls", of(bench::bare_cycles)},
        {relaxed, "co_await", of([](const path& p, int n) { bench::await_cycles(p, {}, n); })},
        {relaxed, "callback", of([](const path& p, int n) { bench::callback_cycles(p, {}, n); })},
        {relaxed, "blocking", of([](const path& p, int n) { bench::blocking_cycles(p, {}, n); })},
        {full, "the bare calls with both syncs", of(bench::bare_durable_cycles)},
        {full, "co_await", of([](const path& p, int n) { bench::await_cycles(p, bench::durable(), n); })},
        {full, "callback", of([](const path& p, int n) { bench::callback_cycles(p, bench::durable(), n); })},
        {full, "blocking", of([](const path& p, int n) { bench::blocking_cycles(p, bench::durable(), n); })}};
}

std::vector<item> looks_in(const path& at, const std::string& where) {
    return {{where + ", verify", "lstat",
             [at](benchmark::State& s) {
                 const plain_file f(at);
                 repeat(s, [&] { look(f.at()); });
             }},
            {where + ", verify", "lock_guard::verify",
             [at](benchmark::State& s) {
                 fslock::lock_guard lock = fslock::acquire(at);
                 repeat(s, [&] {
                     if (!lock.verify()) bench::fail(at);
                 });
             }},
            {where + ", beat", "pwrite, lstat",
             [at](benchmark::State& s) {
                 const plain_file f(at);
                 repeat(s, [&] {
                     f.write();
                     look(f.at());
                 });
             }},
            {where + ", beat", "one heartbeat", [at](benchmark::State& s) {
                 held h(at);
                 repeat(s, [&] { h.beat(); });
             }}};
}

std::vector<item> texts_in(const path& at, const std::string& where) {
    return {{where + ", read a record", "pread",
             [at](benchmark::State& s) {
                 const plain_file f(at);
                 repeat(s, [&] { f.read(); });
             }},
            {where + ", read a record", "core::parse",
             [at](benchmark::State& s) {
                 const auto text = core::format(held(at).record());
                 repeat(s, [&] { benchmark::DoNotOptimize(core::parse(text)); });
             }},
            {where + ", write a record", "pwrite",
             [at](benchmark::State& s) {
                 const plain_file f(at);
                 repeat(s, [&] { f.write(); });
             }},
            {where + ", write a record", "core::format", [at](benchmark::State& s) {
                 const held h(at);
                 repeat(s, [&] { benchmark::DoNotOptimize(core::format(h.record())); });
             }}};
}

// ---- how it is told --------------------------------------------------------------------------------------

/// Keeps the times of all repetitions.
class collector : public benchmark::BenchmarkReporter {
 public:
    bool ReportContext(const Context&) override { return true; }
    void ReportRuns(const std::vector<Run>& runs) override {
        for (const auto& r : runs)
            if (r.run_type == Run::RT_Iteration)
                ns[r.run_name.function_name].push_back(r.GetAdjustedRealTime());
    }
    std::map<std::string, std::vector<double>> ns;
};

void measure(const bench::setting& here, bench::table& results) {
    std::vector<item> items;
    const auto add = [&](std::vector<item> more) { items.insert(items.end(), more.begin(), more.end()); };
    add(cycles_in(here / "lock", "disk"));
    add(looks_in(here / "lock", "disk"));
    add(texts_in(here / "lock", "disk"));
    std::string memory = "/dev/shm/fslock-bench-XXXXXX";
    const bool in_memory = ::mkdtemp(memory.data()) != nullptr;
    if (in_memory) {
        add(cycles_in(path(memory) / "lock", "tmpfs"));
        add(looks_in(path(memory) / "lock", "tmpfs"));
    } else {
        results.note("tmpfs skipped: no /dev/shm to write to");
    }
    for (const auto& i : items)
        benchmark::RegisterBenchmark((i.group + ": " + i.name).c_str(), i.run)
            ->MinTime(here.quick ? 0.01 : 0.1)
            ->Repetitions(here.count(9, 3))
            ->UseRealTime();
    std::string program = "micro";
    std::string order = "--benchmark_enable_random_interleaving=true";
    char* arguments[] = {program.data(), order.data(), nullptr};
    int count = 2;
    benchmark::Initialize(&count, arguments);
    collector all;
    (void)benchmark::RunSpecifiedBenchmarks(&all);
    if (in_memory) std::filesystem::remove_all(memory);
    results.note(
        bench::text("medians of %d repetitions in random order; the ratio is to the first of each group",
                    here.count(9, 3)));
    std::string group;
    double bare_us = 0;
    for (const auto& i : items) {
        auto us = all.ns.at(i.group + ": " + i.name);
        for (auto& t : us) t /= 1e3;
        if (i.group != group) {
            group = i.group;
            bare_us = bench::median(us);
            results.note(group);
        }
        results.add(bench::times(i.name, us, bare_us));
    }
}

}  // namespace

int main(int argc, char** argv) {
    return bench::run(argc, argv, "micro", measure);
}
