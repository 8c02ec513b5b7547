// Where processes contend for locks: what they tell each other in shared memory, whether they ever overlap, and
// how long everything takes.
#pragma once

#include <atomic>
#include <bit>
#include <limits>

#include "peers.hpp"
#include "process.hpp"

namespace bench {

/// Counts times in steps of 3 %. Any number of processes may add.
class histogram {
 public:
    void add(std::int64_t ns) noexcept {
        const auto value = static_cast<std::uint64_t>(std::max<std::int64_t>(ns, 0));
        counts_[slot_of(value)].fetch_add(1, std::memory_order_relaxed);
        auto most = most_.load();
        while (most < value && !most_.compare_exchange_weak(most, value)) {
        }
    }
    [[nodiscard]] double most_us() const noexcept { return static_cast<double>(most_) / 1e3; }
    [[nodiscard]] std::uint64_t count() const noexcept;
    /// The time that `share` of all do not exceed. Not a number when there are none.
    [[nodiscard]] double percentile_us(double share) const noexcept;
    /// Calls `visit(us, samples)` for every step that has samples, upwards.
    template <class Visit>
    void visit(Visit visit) const {
        for (std::size_t i = 0; i < slots; ++i)
            if (const auto n = counts_[i].load(); n != 0) visit(middle_us(i), n);
    }

 private:
    static constexpr int steps = 32;                  ///< of each doubling
    static constexpr std::size_t slots = 39 * steps;  // up to two hours

    static std::size_t slot_of(std::uint64_t v) noexcept {
        const int shift = std::max(static_cast<int>(std::bit_width(v)) - 6, 0);
        const auto slot = static_cast<std::size_t>(shift) * steps + static_cast<std::size_t>(v >> shift);
        return std::min(slot, slots - 1);
    }
    static double middle_us(std::size_t slot) noexcept;

    std::array<std::atomic<std::uint32_t>, slots> counts_;
    std::atomic<std::uint64_t> most_;
};

struct workload {
    std::string name;
    int processes = 4;
    int coroutines = 1;                  ///< of each process; threads where a peer blocks
    int locks = 1;                       ///< each time one of them, by chance
    std::chrono::microseconds held{0};   ///< sleeping: time, but no processor
    std::chrono::microseconds think{0};  ///< before it asks again
    double kills = 0;                    ///< of owners, in a second
    bool greedy = false;                 ///< the first contender does not think
};

/// One of those who contend.
struct seat {
    int process = 0;
    std::uint32_t life = 0;  ///< counts the processes that were at this place
    int number = 0;          ///< of the contender, among all
    [[nodiscard]] std::uint64_t mark() const noexcept {
        return std::uint64_t{life} << 32 | static_cast<std::uint64_t>(process) << 24 |
               static_cast<std::uint64_t>(number + 1);
    }
    static int process_of(std::uint64_t mark) noexcept { return static_cast<int>(mark >> 24 & 0xff); }
    static std::uint32_t life_of(std::uint64_t mark) noexcept { return static_cast<std::uint32_t>(mark >> 32); }
};

/// In shared memory, zeroed before each match.
struct arena {
    static constexpr int most_processes = 64;
    static constexpr int most_contenders = 1 << 16;
    static constexpr int most_locks = 1024;

    struct lock_state {
        std::atomic<std::uint64_t> owner;  ///< its mark; 0: nobody
        std::atomic<std::uint64_t> last;
        std::atomic<std::int64_t> released_ns;
        std::atomic<std::int64_t> orphaned_ns;  ///< when its owner was killed
    };
    struct process_state {
        std::atomic<std::uint32_t> life;
        std::atomic<std::uint32_t> doomed;  ///< the lives up to this one were killed, or are about to be
        std::atomic<double> cpu_before_us;
        std::atomic<double> bytes_before;
        std::atomic<pid_t> helper;  ///< an interpreter that locks for it
    };
    struct contender_state {
        std::atomic<std::int64_t> asked_ns;  ///< 0: does not wait
        std::atomic<std::uint64_t> acquired;
    };

    std::atomic<int> ready;
    std::atomic<bool> go;
    std::atomic<bool> dismissed;  ///< they may end: what they have used is known
    std::atomic<std::int64_t> until_ns;
    std::atomic<std::uint64_t> overlaps;  ///< two owners at once
    std::atomic<std::uint64_t> again;     ///< acquired by whom had it last
    histogram waits;
    histogram wakeups;    ///< from the release to a contender who waited by then
    histogram takeovers;  ///< from the kill
    std::array<lock_state, most_locks> locks;
    std::array<process_state, most_processes> processes;
    std::array<contender_state, most_contenders> contenders;

    [[nodiscard]] contender_state& of(const seat& s) { return contenders[static_cast<std::size_t>(s.number)]; }
    [[nodiscard]] bool over() const { return now_ns() > until_ns; }
    void asks(const seat& s) { of(s).asked_ns = now_ns(); }
    /// Right after lock `k` was acquired; says whether the match is still on.
    bool enters(const seat& s, std::size_t k);
    /// Right before it is released.
    void leaves(const seat& s, std::size_t k);
};

/// What a match is measured by, in the order of the table.
enum metric : std::uint8_t {
    per_second,
    wait_p50,
    wait_p90,
    wait_p99,
    wait_most,
    jain,
    most_to_least,
    mean_to_least,
    twice,
    wakeup_p50,
    wakeup_p99,
    takeover_p50,
    takeover_p99,
    cpu_us_each,
    calls_each,
    bytes_each,
    metrics
};
/// Not a number: not measured, or there was nothing to measure.
using outcome = std::array<double, metrics>;

/// One peer's processes at work. Ends them when it is destroyed.
class match {
 public:
    /// Starts the processes. REQUIRES: `why_not` is empty.
    match(arena& a, const workload& w, const peer& who, const std::filesystem::path& directory);
    /// Why `who` cannot do `w`; empty: it can.
    [[nodiscard]] static std::string why_not(const workload& w, const peer& who);

    /// Lets them contend for `time` and kills owners meanwhile. `tick` is called about every 100 ms.
    [[nodiscard]] outcome run(std::chrono::milliseconds time, const std::function<void()>& tick);
    /// Lets them contend, and counts the system calls of all of them per acquisition. Not a number where there
    /// was none.
    [[nodiscard]] double count_calls(std::chrono::milliseconds time);

 private:
    void start(int process);
    void begin(std::chrono::milliseconds time);
    bool kill_an_owner();
    void account(int process);
    void await_end();
    [[nodiscard]] double acquired(int first, int count) const;
    [[nodiscard]] outcome result(double seconds) const;

    arena& a_;
    const workload w_;
    const peer who_;
    std::vector<std::filesystem::path> paths_;
    std::vector<std::unique_ptr<child>> all_;
    double cpu_us_ = 0;
    double bytes_ = 0;
};

}  // namespace bench
