// What a lock that nobody else wants costs beside the bare system calls that do the least for it, in turns.
#include <linux/magic.h>
#include <sys/vfs.h>

#include <atomic>

#include "cycles.hpp"

// ---- allocations are counted where all of them end -------------------------------------------------------

namespace {
std::atomic<bool> counting{false};
std::atomic<std::uint64_t> allocations{0};

void note_allocation() noexcept {
    if (counting.load(std::memory_order_relaxed)) allocations.fetch_add(1, std::memory_order_relaxed);
}
}  // namespace

#if defined(__GLIBC__)
extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);

void* malloc(std::size_t size) {
    note_allocation();
    return __libc_malloc(size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
    note_allocation();
    return __libc_memalign(alignment, size);
}
}
constexpr bool allocations_are_counted = true;
#else
constexpr bool allocations_are_counted = false;
#endif

namespace {

using bench::contestant;
using path = std::filesystem::path;

std::vector<contestant> relaxed_ones() {
    return {
        {"the six bare calls", bench::bare_cycles},
        {"co_await async_acquire, release", [](const path& p, int n) { bench::await_cycles(p, {}, n); }, 1.3},
        {"acquire, release (blocking)", [](const path& p, int n) { bench::blocking_cycles(p, {}, n); }, 2.5},
    };
}

std::vector<contestant> durable_ones() {
    return {
        {"the bare calls with both syncs, on another thread", bench::bare_durable_cycles_elsewhere},
        {"the same, on this thread", bench::bare_durable_cycles},
        {"co_await async_acquire, release, durability::full",
         [](const path& p, int n) { bench::await_cycles(p, bench::durable(), n); }, 1.1},
    };
}

/// Where a sync reaches no device its budget means nothing.
bool in_memory(const path& at) {
    struct statfs about {};
    if (::statfs(at.parent_path().c_str(), &about) != 0) bench::fail(at);
    return about.f_type == TMPFS_MAGIC || about.f_type == RAMFS_MAGIC;
}

void compete(bench::table& results, std::vector<contestant> all, const path& at, int rounds, int cycles,
             bool bounded) {
    bench::in_turns(all, at, rounds, cycles);
    results.note(bench::text("one cycle, of %d rounds of %d cycles; the ratio is the median of the rounds'",
                             rounds, cycles));
    for (const auto& c : all) {
        bench::row r = bench::times(c.name, c.us, 1);
        const double ratio = bench::median(c.ratios);
        r.ratio = bench::ratio_text(ratio);
        if (c.budget != 0 && bounded) r.bounds = {{bench::text("<= %.1f x", c.budget), ratio <= c.budget}};
        results.add(r);
    }
}

/// Of the library: the path is a parameter by value, and its copy the caller's.
void count_allocations(bench::table& results, const path& at) {
    constexpr int cycles = 1000;
    constexpr double budget = 4;
    if (!allocations_are_counted) return;
    const auto of = [](auto action) {
        allocations = 0;
        counting = true;
        action();
        counting = false;
        return static_cast<double>(allocations);
    };
    const double copies = of([&] { const path copy = at; });
    bench::await_cycles(at, {}, 100);
    const double frames = of([&] { bench::await_cycles(at, {}, 0); });
    const double each = (of([&] { bench::await_cycles(at, {}, cycles); }) - frames) / cycles;
    results.add({"allocations of a copy of the path", bench::text("%.0f", copies), "", "1.00 x"});
    results.add({"allocations of async_acquire, release, without that",
                 bench::text("%.2f", each - copies),
                 "",
                 bench::ratio_text((each - copies) / copies),
                 {{"<= 4", each - copies <= budget}}});
}

void measure(const bench::setting& here, bench::table& results) {
    const path at = here / "lock";
    // Not more cycles than that: ext4 looks at every inode that was freed in the last minute before it takes one.
    compete(results, relaxed_ones(), at, here.count(400, 120), 20, true);
    count_allocations(results, at);
    compete(results, durable_ones(), at, here.count(300, 100), 2, !in_memory(at));
}

}  // namespace

int main(int argc, char** argv) {
    return bench::run(argc, argv, "uncontended", measure);
}
