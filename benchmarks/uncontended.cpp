// What a lock that nobody else wants costs beside the bare system calls it is made of, round by round in turns.
#include <fcntl.h>
#include <sys/stat.h>

#include <asio/awaitable.hpp>
#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>
#include <atomic>

#include "fslock/fslock.hpp"
#include "measure.hpp"

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

namespace asio = fslock::asio;

/// The six calls that a lock cannot do without: open, lock, write, link, unlink, close.
void bare_cycle(const std::string& directory, const std::string& path, const std::string& record) {
    const int fd = ::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    struct flock range {};
    range.l_type = F_WRLCK;
    range.l_len = 1;
    char from[32];
    std::snprintf(from, sizeof from, "/proc/self/fd/%d", fd);
    const bool done = fd >= 0 && ::fcntl(fd, F_OFD_SETLK, &range) == 0 &&
                      ::write(fd, record.data(), record.size()) == static_cast<ssize_t>(record.size()) &&
                      ::linkat(AT_FDCWD, from, AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0 &&
                      ::unlink(path.c_str()) == 0 && ::close(fd) == 0;
    if (!done) bench::fail("the bare calls in " + directory);
}

/// With `durability::full`: a named file, which is synced before it becomes the record; then its directory.
void bare_durable_cycle(const std::string& directory, const std::string& path, const std::string& record) {
    const auto temp = path + ".tmp";
    const int fd = ::open(temp.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    struct flock range {};
    range.l_type = F_WRLCK;
    range.l_len = 1;
    bool done = fd >= 0 && ::fcntl(fd, F_OFD_SETLK, &range) == 0 &&
                ::write(fd, record.data(), record.size()) == static_cast<ssize_t>(record.size()) &&
                ::fsync(fd) == 0 && ::link(temp.c_str(), path.c_str()) == 0 && ::unlink(temp.c_str()) == 0;
    const int there = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    done = done && there >= 0 && ::fsync(there) == 0 && ::close(there) == 0 && ::unlink(path.c_str()) == 0 &&
           ::close(fd) == 0;
    if (!done) bench::fail("the bare calls in " + directory);
}

asio::io_context& loop() {
    static asio::io_context io(1);
    return io;
}

asio::awaitable<void> coroutine_cycles(const std::filesystem::path& path, fslock::options o, int cycles) {
    for (int i = 0; i < cycles; ++i) {
        const fslock::lock_guard lock = co_await fslock::async_acquire(path, o);
        if (!lock) throw std::runtime_error("no lock");
    }
}

void await_cycles(const std::filesystem::path& path, const fslock::options& o, int cycles) {
    asio::co_spawn(loop(), coroutine_cycles(path, o, cycles), [](const std::exception_ptr& e) {
        if (e) std::rethrow_exception(e);
    });
    loop().restart();
    loop().run();
}

struct contestant {
    const char* name;
    void (*run)(const std::filesystem::path& path, int cycles);
    double budget = 0;  ///< in bare calls; none for these themselves
    std::vector<double> us = {};
    std::vector<double> ratios = {};
};

const std::string record(250, 'x');

std::vector<contestant> relaxed_ones() {
    return {
        {"the six bare calls",
         [](const std::filesystem::path& p, int cycles) {
             const std::string directory = p.parent_path();
             for (int i = 0; i < cycles; ++i) bare_cycle(directory, p.native(), record);
         }},
        {"co_await async_acquire, release",
         [](const std::filesystem::path& p, int cycles) { await_cycles(p, {}, cycles); }, 1.3},
        {"acquire, release (blocking)",
         [](const std::filesystem::path& p, int cycles) {
             for (int i = 0; i < cycles; ++i) (void)static_cast<bool>(fslock::acquire(p));
         },
         2.5},
    };
}

std::vector<contestant> durable_ones() {
    return {
        {"the bare calls with both syncs",
         [](const std::filesystem::path& p, int cycles) {
             const std::string directory = p.parent_path();
             for (int i = 0; i < cycles; ++i) bare_durable_cycle(directory, p.native(), record);
         }},
        {"co_await async_acquire, release, durability::full",
         [](const std::filesystem::path& p, int cycles) {
             fslock::options o;
             o.durability = fslock::durability::full;
             await_cycles(p, o, cycles);
         },
         1.1},
    };
}

/// Where the first contestant takes less than `least_us`, the budgets mean nothing.
void compete(bench::table& results, std::vector<contestant> all, const std::filesystem::path& path, int rounds,
             int cycles, double least_us = 0) {
    for (auto& c : all) c.run(path, cycles);  // for nothing: caches, threads, the first look at the directory
    for (int round = 0; round < rounds; ++round) {
        for (auto& c : all) {
            const auto begin = bench::now_ns();
            c.run(path, cycles);
            c.us.push_back(bench::microseconds_between(begin, bench::now_ns()) / cycles);
            c.ratios.push_back(c.us.back() / all.front().us.back());
        }
    }
    results.note(bench::text("one cycle, of %d rounds of %d cycles; the ratio is the median of the rounds'",
                             rounds, cycles));
    const bool comparable = bench::median(all.front().us) >= least_us;
    for (const auto& c : all) {
        bench::row r = bench::times(c.name, c.us, 1);
        const double ratio = bench::median(c.ratios);
        r.ratio = bench::ratio_text(ratio);
        if (c.budget != 0 && comparable) r.bounds = {{bench::text("<= %.1f x", c.budget), ratio <= c.budget}};
        results.add(r);
    }
}

/// Of the library: the path is a parameter by value, and its copy the caller's.
void count_allocations(bench::table& results, const std::filesystem::path& path) {
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
    const double copies = of([&] { const std::filesystem::path copy = path; });
    await_cycles(path, {}, 100);
    const double frames = of([&] { await_cycles(path, {}, 0); });
    const double each = (of([&] { await_cycles(path, {}, cycles); }) - frames) / cycles;
    results.add({"allocations of a copy of the path", bench::text("%.0f", copies), "", "1.00 x"});
    results.add({"allocations of async_acquire, release, without that",
                 bench::text("%.2f", each - copies),
                 "",
                 bench::ratio_text((each - copies) / copies),
                 {{"<= 4", each - copies <= budget}}});
}

void measure(const bench::setting& here, bench::table& results) {
    compete(results, relaxed_ones(), here / "lock", here.count(120, 20), 200);
    count_allocations(results, here / "lock");
    constexpr double a_sync_us = 500;  // what is faster, as on tmpfs, reaches no device
    compete(results, durable_ones(), here / "lock", here.count(30, 5), 10, a_sync_us);
}

}  // namespace

int main(int argc, char** argv) {
    return bench::run(argc, argv, "uncontended", measure);
}
