#include "arena.hpp"

#include <numeric>

#include "contenders.hpp"
#include "system_calls.hpp"

namespace bench {

using namespace std::chrono_literals;

// ---- times -----------------------------------------------------------------------------------------------

std::uint64_t histogram::count() const noexcept {
    std::uint64_t all = 0;
    for (const auto& n : counts_) all += n;
    return all;
}

double histogram::percentile_us(double share) const noexcept {
    const double rank = std::ceil(share * static_cast<double>(count()));
    double seen = 0;
    for (std::size_t i = 0; i < slots; ++i) {
        seen += counts_[i];
        if (seen != 0 && seen >= rank) return std::min(middle_us(i), most_us());
    }
    return std::numeric_limits<double>::quiet_NaN();
}

double histogram::middle_us(std::size_t slot) noexcept {
    const auto shift = std::max<int>(static_cast<int>(slot / steps) - 1, 0);
    const auto least = slot - static_cast<std::size_t>(shift) * steps;
    return std::ldexp(static_cast<double>(least) + 0.5, shift) / 1e3;
}

// ---- exclusion -------------------------------------------------------------------------------------------

bool arena::enters(const seat& s, std::size_t k) {
    const auto now = now_ns();
    auto& l = locks[k];
    const auto before = l.owner.exchange(s.mark());
    const auto asked = of(s).asked_ns.exchange(0);
    const auto orphaned = l.orphaned_ns.exchange(0);
    if (before != 0) {
        // Only who was killed leaves a mark behind. The word is written before the signal is sent: a new owner
        // may be faster than the report of the death.
        const auto& dead = processes[static_cast<std::size_t>(seat::process_of(before))];
        if (dead.doomed < seat::life_of(before)) ++overlaps;
    }
    if (now > until_ns) return false;
    ++of(s).acquired;
    if (l.last.exchange(s.mark()) == s.mark()) ++again;
    waits.add(now - asked);
    if (before != 0 && orphaned != 0) takeovers.add(now - orphaned);
    const auto released = l.released_ns.load();
    if (before == 0 && asked < released) wakeups.add(now - released);
    return true;
}

void arena::leaves(const seat& s, std::size_t k) {
    auto mine = s.mark();
    locks[k].released_ns = now_ns();
    if (!locks[k].owner.compare_exchange_strong(mine, 0)) ++overlaps;
}

// ---- the match -------------------------------------------------------------------------------------------

std::string match::why_not(const workload& w, const peer& who) {
    if (!who.missing.empty()) return who.missing;
    if (who.one_per_process && w.coroutines > 1) return "does not keep the contenders of one process apart";
    return {};
}

match::match(arena& a, const workload& w, const peer& who, const std::filesystem::path& directory)
    : a_(a), w_(w), who_(who) {
    if (w.processes > arena::most_processes || w.locks > arena::most_locks ||
        w.processes * w.coroutines > arena::most_contenders)
        throw std::invalid_argument("too many processes, coroutines or locks");
    new (&a) arena{};
    std::filesystem::create_directory(directory);
    for (int i = 0; i < w.locks; ++i) paths_.push_back(directory / ("lock-" + std::to_string(i)));
    for (int i = 0; i < w.processes; ++i) {
        all_.emplace_back();
        start(i);
    }
    wait_until("all are ready", [&] {
        expect_no_failed_child();
        return a_.ready == w_.processes;
    });
}

void match::start(int process) {
    auto& p = a_.processes[static_cast<std::size_t>(process)];
    p.helper = 0;
    p.cpu_before_us = 0;
    p.bytes_before = 0;
    const auto life = ++p.life;
    all_[static_cast<std::size_t>(process)] = std::make_unique<child>([this, process, life] {
        contend(a_, w_, who_, paths_, {process, life, process * w_.coroutines});
    });
}

void match::begin(std::chrono::milliseconds time) {
    a_.until_ns = now_ns() + std::chrono::nanoseconds(time).count();
    a_.go = true;
}

/// Kills the owner of one of the locks, and puts another process in its place. False when that lock had none.
bool match::kill_an_owner() {
    static std::minstd_rand chance(std::random_device{}());
    const auto k = std::uniform_int_distribution<std::size_t>(0, paths_.size() - 1)(chance);
    const auto mark = a_.locks[k].owner.load();
    if (mark == 0) return false;
    const int process = seat::process_of(mark);
    auto& victim = a_.processes[static_cast<std::size_t>(process)];
    if (victim.doomed >= seat::life_of(mark)) return false;  // an orphan already
    account(process);
    const auto killed_ns = now_ns();
    for (std::size_t i = 0; i < paths_.size(); ++i)
        if (seat::process_of(a_.locks[i].owner) == process) a_.locks[i].orphaned_ns = killed_ns;
    victim.doomed = seat::life_of(mark);
    all_[static_cast<std::size_t>(process)]->kill();
    all_[static_cast<std::size_t>(process)]->reap();
    for (int i = 0; i < w_.coroutines; ++i)
        a_.contenders[static_cast<std::size_t>(process * w_.coroutines + i)].asked_ns = 0;
    start(process);
    return true;
}

/// Adds what a process has used since it was ready.
void match::account(int process) {
    const auto& p = a_.processes[static_cast<std::size_t>(process)];
    const auto pid = all_[static_cast<std::size_t>(process)]->pid();
    const auto helper = p.helper.load();
    cpu_us_ += cpu_us(pid) + (helper != 0 ? cpu_us(helper) : 0) - p.cpu_before_us;
    bytes_ += anonymous_bytes(pid) + (helper != 0 ? anonymous_bytes(helper) : 0) - p.bytes_before;
}

outcome match::run(std::chrono::milliseconds time, const std::function<void()>& tick) {
    begin(time);
    const auto began = now_ns();
    auto kill_at = began;
    auto tick_at = began;
    while (!a_.over()) {
        if (w_.kills > 0 && now_ns() > kill_at && kill_an_owner())
            kill_at = now_ns() + static_cast<std::int64_t>(1e9 / w_.kills);
        if (now_ns() > tick_at) {
            tick();
            expect_no_failed_child();
            tick_at = now_ns() + 100'000'000;
        }
        sleep_for(w_.kills > 0 ? 200us : 5ms);
    }
    const auto ended = a_.until_ns.load();
    for (auto& c : a_.contenders)  // whoever waits still has waited for that long at least
        if (const auto asked = c.asked_ns.load(); asked != 0 && asked < ended) a_.waits.add(ended - asked);
    bytes_ = 0;  // of those who live
    for (int i = 0; i < w_.processes; ++i) account(i);
    const auto out = result(std::chrono::duration<double>(time).count());
    await_end();
    return out;
}

double match::count_calls(std::chrono::milliseconds time) {
    begin(time + 2s);
    const auto all_acquired = [this] { return acquired(0, w_.processes * w_.coroutines); };
    std::vector<pid_t> watched;
    for (int i = 0; i < w_.processes; ++i) {
        watched.push_back(all_[static_cast<std::size_t>(i)]->pid());
        if (const pid_t helper = a_.processes[static_cast<std::size_t>(i)].helper; helper != 0)
            watched.push_back(helper);
    }
    double calls = 0;
    double acquisitions = 0;
    {
        call_counter counter(watched);
        acquisitions = all_acquired();
        calls = static_cast<double>(counter.count_for(time).all);
        acquisitions = all_acquired() - acquisitions;
    }
    a_.until_ns = now_ns();
    await_end();
    return acquisitions == 0 ? std::numeric_limits<double>::quiet_NaN() : calls / acquisitions;
}

/// Some peers sleep for long: who does not end by himself is ended.
void match::await_end() {
    a_.dismissed = true;
    const auto patience = now_ns() + 500'000'000;
    const auto all_ended = [&] {
        return std::all_of(all_.begin(), all_.end(), [](auto& c) { return c->ended(); });
    };
    while (!all_ended() && now_ns() < patience) sleep_for(1ms);
    bool failed = false;
    for (auto& c : all_) failed = failed || (c->ended() && c->failed());
    all_.clear();
    if (failed) throw std::runtime_error("a process of " + who_.name + " failed");
}

double match::acquired(int first, int count) const {
    double sum = 0;
    for (int i = first; i < first + count; ++i)
        sum += static_cast<double>(a_.contenders[static_cast<std::size_t>(i)].acquired);
    return sum;
}

outcome match::result(double seconds) const {
    constexpr double nothing = std::numeric_limits<double>::quiet_NaN();
    const int contenders = w_.processes * w_.coroutines;
    std::vector<double> each;
    for (int i = 0; i < contenders; ++i) each.push_back(acquired(i, 1));
    const double all = acquired(0, contenders);
    const double squares = std::inner_product(each.begin(), each.end(), each.begin(), 0.0);
    const double least = *std::min_element(each.begin(), each.end());
    outcome out{};
    out[per_second] = all / seconds;
    out[wait_p50] = a_.waits.percentile_us(0.5);
    out[wait_p90] = a_.waits.percentile_us(0.9);
    out[wait_p99] = a_.waits.percentile_us(0.99);
    out[wait_most] = a_.waits.most_us();
    out[jain] = all == 0 ? nothing : all * all / (contenders * squares);
    out[most_to_least] = all == 0 ? nothing : *std::max_element(each.begin(), each.end()) / least;
    out[mean_to_least] = all == 0 ? nothing : all / contenders / least;
    out[twice] = all == 0 ? nothing : static_cast<double>(a_.again) / all;
    out[wakeup_p50] = a_.wakeups.percentile_us(0.5);
    out[wakeup_p99] = a_.wakeups.percentile_us(0.99);
    out[takeover_p50] = a_.takeovers.percentile_us(0.5);
    out[takeover_p99] = a_.takeovers.percentile_us(0.99);
    out[cpu_us_each] = all == 0 ? nothing : cpu_us_ / all;
    out[calls_each] = nothing;
    out[bytes_each] = bytes_ / contenders;
    return out;
}

}  // namespace bench
