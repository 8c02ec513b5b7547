// Sixteen processes in several PID namespaces that are killed, stopped, interrupted, end, fork, and become other
// programs, all at random. $FSLOCK_STORM_SECONDS says for how long, $FSLOCK_STORM_SEED repeats the choices.
#include <boost/test/unit_test.hpp>

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <thread>

#include "fslock/fslock.hpp"
#include "storm_page.hpp"
#include "support/child.hpp"
#include "support/directory.hpp"
#include "support/filesystem.hpp"

namespace {

using namespace std::chrono_literals;
using clock_type = std::chrono::steady_clock;

constexpr const char* again_argument = "take part";

/// Becomes this program once more, which goes on at the same place.
void become_again(const storm::part& mine) {
    const int nowhere = ::open("/dev/null", O_RDWR);
    (void)::dup2(nowhere, STDOUT_FILENO);
    const auto worker = std::to_string(mine.worker), seed = std::to_string(mine.seed);
    ::execl("/proc/self/exe", "process_tests", "--run_test=storms/one_lock_in_a_storm_of_signals", "--log_level=nothing",
            "--report_level=no", "--", again_argument, mine.locks.c_str(), mine.page.c_str(), worker.c_str(),
            seed.c_str(), nullptr);
}

bool pid_namespaces_can_be_made() {
    return support::run_program({"unshare", "--pid", "--fork", "--mount-proc", "true"}) == 0;
}

/// A process that can be signalled, and what it takes to reap it.
class worker {
 public:
    worker(const storm::part& p, storm::page& all, bool apart) : part_(p), all_(all) {
        all_.pids[p.worker] = 0;
        child_ = ::fork();
        if (child_ < 0) throw std::runtime_error("fork");
        if (child_ == 0) apart ? begin_apart() : begin();
    }
    worker(const worker&) = delete;
    worker& operator=(const worker&) = delete;
    ~worker() {
        if (child_ <= 0) return;
        signal(SIGKILL);
        (void)::kill(child_, SIGKILL);
        (void)::waitpid(child_, nullptr, 0);
    }

    void signal(int number) const {
        if (const pid_t pid = all_.pids[part_.worker]; pid != 0) (void)::kill(pid, number);
    }

    /// Condemns, kills and reaps it.
    void kill() {
        auto& condemned = all_.condemned[part_.worker];
        condemned = std::numeric_limits<std::uint32_t>::max();
        while (all_.pids[part_.worker] == 0 && ::waitpid(child_, nullptr, WNOHANG) == 0) std::this_thread::yield();
        signal(SIGKILL);
        (void)::waitpid(child_, nullptr, 0);
        child_ = -1;
        condemned = all_.lives[part_.worker].load();
    }

    /// Whether it ended by itself; it is reaped then.
    bool ended() {
        if (::waitpid(child_, nullptr, WNOHANG) != child_) return false;
        child_ = -1;
        return true;
    }

 private:
    [[noreturn]] void begin() {
        support::die_with_parent();
        all_.pids[part_.worker] = ::getpid();
        storm::take_part(part_, become_again);
    }

    /// As pid 1 of a PID namespace of its own.
    [[noreturn]] void begin_apart() {
        support::die_with_parent();
        if (::unshare(CLONE_NEWPID | CLONE_NEWNS) != 0) ::_exit(96);
        const pid_t first = ::fork();
        if (first == 0) {
            support::die_with_parent();
            (void)::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
            (void)::mount("proc", "/proc", "proc", 0, nullptr);
            storm::take_part(part_, become_again);
        }
        all_.pids[part_.worker] = first;
        (void)::waitpid(first, nullptr, 0);
        ::_exit(0);
    }

    const storm::part part_;
    storm::page& all_;
    pid_t child_ = -1;
};

std::uint32_t from_environment(const char* name, std::uint32_t otherwise) {
    const char* const given = std::getenv(name);
    return given != nullptr ? static_cast<std::uint32_t>(std::strtoul(given, nullptr, 10)) : otherwise;
}

/// An empty page, not where the locks are: not every filesystem can share one.
struct page_file {
    page_file() {
        const int fd = ::mkstemp(path.data());
        if (fd < 0 || ::ftruncate(fd, sizeof(storm::page)) != 0) throw std::runtime_error(path);
        (void)::close(fd);
    }
    page_file(const page_file&) = delete;
    page_file& operator=(const page_file&) = delete;
    ~page_file() { (void)::unlink(path.c_str()); }

    std::string path = "/tmp/fslock-storm-XXXXXX";
};

class storm_of_signals {
 public:
    explicit storm_of_signals(std::uint32_t locks)
        : seed_(from_environment("FSLOCK_STORM_SEED", std::random_device{}())), chance_(seed_),
          gentle_(!support::on_local_filesystem()), apart_(!gentle_ && pid_namespaces_can_be_made() ? 4 : 0) {
        all_ = &storm::page_in(page_.path);
        all_->locks = locks;
        all_->gentle = gentle_;
        BOOST_TEST_MESSAGE("FSLOCK_STORM_SEED=" << seed_ << ", " << locks << " locks, " << apart_
                                                << " of the processes in PID namespaces of their own");
        for (std::size_t i = 0; i < storm::workers; ++i) start(i);
    }

    void rage(std::chrono::seconds how_long) {
        const auto end = clock_type::now() + how_long;
        auto moved = clock_type::now();
        std::uint64_t last = 0;
        while (clock_type::now() < end) {
            std::this_thread::sleep_for(std::chrono::milliseconds(chance_() % 8));
            if (!gentle_ || clock_type::now() > pause_until_) strike(victim());
            go_on_where_due();
            for (std::size_t i = 0; i < storm::workers; ++i)
                if (workers_[i]->ended()) start(i);
            if (all_->acquired != std::exchange(last, all_->acquired)) moved = clock_type::now();
            BOOST_TEST_REQUIRE((clock_type::now() - moved < 60s), "nobody gets a lock; seed " << seed_);
        }
        calm_down();
    }

    void take_stock() {
        const auto& a = *all_;
        BOOST_TEST(a.overlaps_in_page == 0U, a.overlaps_in_page << " overlaps in page; seed " << seed_);
        BOOST_TEST(a.overlaps_on_disk == 0U, a.overlaps_on_disk << " overlaps on disk; seed " << seed_);
        BOOST_TEST(a.lost == 0U, a.lost << " lost; seed " << seed_);
        BOOST_TEST(a.stuck == 0U, a.stuck << " stuck; seed " << seed_);
        BOOST_TEST(a.errors == 0U, a.errors << " errors, the last of them " << std::strerror(a.last_error) << "; seed " << seed_);
        BOOST_TEST(a.inherited == 0U, a.inherited << " inherited; seed " << seed_);
        BOOST_TEST_MESSAGE(a.acquired << " acquisitions, " << kills_ << " kills, " << stops_ << " stops, " << a.exits
                                      << " exits, " << a.execs << " execs, " << a.forks << " forks, "
                                      << a.interrupted << " interruptions");
        clean_up();
    }

 private:
    void start(std::size_t i) {
        const storm::part p{locks_.path(), page_.path, static_cast<std::uint32_t>(i), seed_};
        workers_[i].reset();
        workers_[i] = std::make_unique<worker>(p, *all_, i < apart_);
        stopped_until_[i] = {};
    }

    /// Half of the time somebody inside: that is where it hurts.
    std::size_t victim() {
        if (chance_() % 2 == 0)
            if (const auto who = all_->inside[chance_() % all_->locks].load(); who != 0) return (who >> 32) - 1;
        return chance_() % storm::workers;
    }

    void strike(std::size_t i) {
        if (chance_() % 2 == 0) {
            workers_[i]->kill();
            ++kills_;
            start(i);
            pause_until_ = clock_type::now() + 4s;
        } else if (!gentle_ && chance_() % 4 == 0 && stopped_until_[i] == clock_type::time_point()) {
            workers_[i]->signal(SIGSTOP);
            stopped_until_[i] = clock_type::now() + std::chrono::milliseconds(chance_() % 900);
            ++stops_;
        }
    }

    void go_on_where_due(bool all = false) {
        for (std::size_t i = 0; i < storm::workers; ++i) {
            if (stopped_until_[i] == clock_type::time_point()) continue;
            if (!all && clock_type::now() < stopped_until_[i]) continue;
            workers_[i]->signal(SIGCONT);
            stopped_until_[i] = {};
        }
    }

    void calm_down() {
        all_->over = true;
        go_on_where_due(true);
        const auto limit = clock_type::now() + 90s;
        for (auto& w : workers_) {
            while (!w->ended()) {
                std::this_thread::sleep_for(5ms);
                BOOST_TEST_REQUIRE((clock_type::now() < limit), "a worker does not end; seed " << seed_);
            }
        }
    }

    /// Every lock is to be had, by taking a dead owner over, and nothing but private files of the dead stays behind.
    void clean_up() {
        fslock::options o;
        o.heartbeat_interval = 50ms;
        o.poll_interval = 2ms;
        for (std::uint32_t i = 0; i < all_->locks; ++i) {
            const auto path = locks_ / ("x" + std::to_string(i));
            support::child owner([&](support::child::pipe_to_parent& parent) {
                const auto lock = fslock::try_acquire(path, 60s, o);
                parent.say(lock ? 'o' : 'n');
                for (;;) ::pause();
            });
            BOOST_TEST(owner.hear() == 'o');
            owner.kill_and_reap();
            auto next = fslock::try_acquire(path, 60s, o);
            BOOST_TEST(static_cast<bool>(next));
            next.release();  // the destructor would not wait for a shared filesystem
        }
        auto left = locks_.names();
        const auto temps =
            std::erase_if(left, [](const auto& n) { return n.find(".tmp.") != std::string::npos; });
        std::erase_if(left, [](const auto& n) { return n.starts_with("marker"); });
        for (const auto& name : left) BOOST_TEST(name == "", "left behind; seed " << seed_ << ": " << name);
        BOOST_TEST(temps <= kills_ + all_->exits + all_->execs);
        BOOST_TEST_MESSAGE(temps << " private files of the dead are left");
    }

    const support::directory locks_;
    const page_file page_;
    const std::uint32_t seed_;
    std::mt19937 chance_;
    /// Without a witness a takeover takes more than a second, in which nobody else may be hit; a process that was stopped
    /// in the middle of one may displace an owner, and one that became another program counts as alive.
    const bool gentle_;
    const std::size_t apart_;
    clock_type::time_point pause_until_{};
    storm::page* all_ = nullptr;
    std::array<std::unique_ptr<worker>, storm::workers> workers_;
    std::array<clock_type::time_point, storm::workers> stopped_until_{};
    std::uint64_t kills_ = 0;
    std::uint64_t stops_ = 0;
};

/// What the environment asks for is shared by the cases.
std::chrono::seconds share_of_time() {
    return std::chrono::seconds(std::max(from_environment("FSLOCK_STORM_SECONDS", 30) / 2, 1U));
}

/// Where a process of a storm goes on after it became a new program.
void take_part_again() {
    const auto& program = boost::unit_test::framework::master_test_suite();
    if (program.argc != 6 || program.argv[1] != std::string(again_argument)) return;
    const storm::part mine{program.argv[2], program.argv[3], static_cast<std::uint32_t>(std::atoi(program.argv[4])),
                           static_cast<std::uint32_t>(std::strtoul(program.argv[5], nullptr, 10))};
    storm::take_part(mine, become_again);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(storms)

BOOST_AUTO_TEST_CASE(one_lock_in_a_storm_of_signals) {  // K06, K07
    take_part_again();
    storm_of_signals s(1);
    s.rage(share_of_time());
    s.take_stock();
}

BOOST_AUTO_TEST_CASE(many_locks_in_a_storm_of_signals) {  // K06, K07
    storm_of_signals s(12);
    s.rage(share_of_time());
    s.take_stock();
}

BOOST_AUTO_TEST_SUITE_END()
