// What each process of a storm does: short turns under a lock, in which it may end, fork, or become a new program.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <random>
#include <stdexcept>
#include <string>

#include "fslock/fslock.hpp"
#include "storm_page.hpp"

namespace storm {
namespace {

using namespace std::chrono_literals;

constexpr auto for_ever = 60s;

/// ThreadSanitizer cannot follow the threads of a child that was forked while there were others.
#if defined(__SANITIZE_THREAD__)
constexpr bool may_fork = false;
#else
constexpr bool may_fork = true;
#endif

page* shared = nullptr;  // for the handler of a signal

void count_interruption(int) { ++shared->interrupted; }

/// Signals that interrupt whatever call they find, every few milliseconds or never.
void interrupt_every(std::chrono::microseconds interval) {
    struct sigaction action {};
    action.sa_handler = count_interruption;  // without SA_RESTART
    (void)::sigaction(SIGALRM, &action, nullptr);
    itimerval timer{};
    timer.it_interval.tv_usec = timer.it_value.tv_usec = interval.count();
    (void)::setitimer(ITIMER_REAL, &timer, nullptr);
}

class participant {
 public:
    participant(const part& mine, page& p, void (*again)(const part&))
        : mine_(mine), page_(p), again_(again), me_{mine.worker, ++p.lives[mine.worker]},
          chance_(mine.seed + 1000 * mine.worker + 100'000 * me_.life) {}

    void take_turns() {
        const bool interrupted = one_in(2);
        if (interrupted) interrupt_every(std::chrono::microseconds(500 + chance_() % 3000));
        while (!page_.over) turn();
        interrupt_every(0us);
    }

 private:
    bool one_in(unsigned n) { return chance_() % n == 0; }

    fslock::options any_options() {
        fslock::options o;
        o.heartbeat_interval = 50ms;
        o.poll_interval = 2ms;
        if (one_in(8)) o.durability = fslock::durability::full;
        if (one_in(4)) o.events = fslock::events::off;
        return o;
    }

    void turn() {
        const std::size_t number = chance_() % page_.locks;
        const auto path = mine_.locks / ("x" + std::to_string(number));
        const bool impatient = one_in(4);
        fslock::error_code ec;
        auto lock = fslock::try_acquire(path, impatient ? std::chrono::milliseconds(chance_() % 6) : for_ever,
                                        any_options(), ec);
        note(ec);
        if (!lock) {
            if (!ec && !impatient) ++page_.stuck;
            return;
        }
        work(number, lock);
        lock.release(ec);
        note(ec);
    }

    void note(fslock::error_code ec) {
        if (!ec) return;
        ++page_.errors;
        page_.last_error = ec.value();
    }

    void work(std::size_t number, fslock::lock_guard& lock) {
        const auto marker = mine_.locks / ("marker" + std::to_string(number));
        const auto me = me_.as_number();
        const auto other = page_.inside[number].exchange(me);
        const bool left_over = other != 0 && page_.is_condemned(other);
        if (other != 0 && !left_over) ++page_.overlaps_in_page;
        if (!mark(marker)) {
            // The last one's marker, if it died; nobody else's, since a marker goes before its owner's name does.
            if (!left_over) ++page_.overlaps_on_disk;
            (void)unmark(marker);
            (void)mark(marker);
        }
        ++page_.acquired;
        stay_a_while(lock);
        if (!lock.verify()) ++page_.lost;
        if (!unmark(marker)) ++page_.overlaps_on_disk;
        auto expected = me;
        if (!page_.inside[number].compare_exchange_strong(expected, 0)) ++page_.overlaps_in_page;
    }

    static bool mark(const std::filesystem::path& marker) {
        int fd = -1;
        do fd = ::open(marker.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
        while (fd < 0 && errno == EINTR);
        if (fd >= 0) (void)::close(fd);
        return fd >= 0;
    }

    static bool unmark(const std::filesystem::path& marker) {
        int n = -1;
        do n = ::unlink(marker.c_str());
        while (n < 0 && errno == EINTR);
        return n == 0;
    }

    void stay_a_while(fslock::lock_guard& lock) {
        (void)::usleep(one_in(20) ? 20'000 : chance_() % 1500);
        switch (page_.gentle ? 2 + chance_() % 198 : chance_() % 200) {
            case 0: end(); break;
            case 1: become_a_new_program(); break;
            case 2:
            case 3:
            case 4:
                if (may_fork) fork_a_child(lock);
                break;
            default: break;
        }
    }

    void end() {
        page_.condemned[mine_.worker] = me_.life;
        ++page_.exits;
        ::_exit(0);
    }

    void become_a_new_program() {
        interrupt_every(0us);  // outlives an exec, its handler does not
        page_.condemned[mine_.worker] = me_.life;
        ++page_.execs;
        again_(mine_);
        ::_exit(1);
    }

    /// The child may outlive its parent by a little, and has nothing of its lock.
    void fork_a_child(fslock::lock_guard& lock) {
        const auto nap = static_cast<useconds_t>(chance_() % 30'000);
        const auto other = mine_.locks / ("x" + std::to_string(chance_() % page_.locks));
        if (::fork() != 0) {
            ++page_.forks;
            return;
        }
        fslock::error_code ec;
        auto inherited = std::move(lock);
        if (inherited.verify(ec)) ++page_.inherited;
        inherited = fslock::lock_guard();
        (void)::usleep(nap);
        { const auto own = fslock::try_acquire_once(other, any_options(), ec); }
        ::_exit(0);
    }

    const part& mine_;
    page& page_;
    void (*const again_)(const part&);
    const name me_;
    std::mt19937 chance_;
};

}  // namespace

page& page_in(const std::filesystem::path& at) {
    const int fd = ::open(at.c_str(), O_RDWR | O_CLOEXEC);
    void* const where =
        fd < 0 ? MAP_FAILED : ::mmap(nullptr, sizeof(page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0) (void)::close(fd);
    if (where == MAP_FAILED) throw std::runtime_error("mmap " + at.native());
    return *static_cast<page*>(where);
}

void take_part(const part& mine, void (*again)(const part&)) {
    try {
        shared = &page_in(mine.page);
        (void)std::signal(SIGCHLD, SIG_IGN);  // nobody waits for the children
        participant(mine, *shared, again).take_turns();
    } catch (...) {
        if (shared != nullptr) ++shared->errors;
        ::_exit(99);  // not on into the tests of the parent
    }
    ::_exit(0);
}

}  // namespace storm
