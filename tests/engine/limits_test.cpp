// Limits of the process, what failures leave behind, and guards and paths that are used a second time.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <boost/test/unit_test.hpp>
#include <csignal>

#include "asking.hpp"
#include "crafted.hpp"
#include "fslock/fslock.hpp"

namespace {

using namespace support;
namespace asio = fslock::asio;
using fslock::lock_guard;

void limit_descriptors(rlim_t most) {
    rlimit limit{};
    (void)::getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = most;
    if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) throw std::runtime_error("setrlimit");
}

/// Takes every descriptor that this process may still have.
class no_descriptor_left {
 public:
    no_descriptor_left() {
        const auto highest = open_descriptors() + 40;  // there may be gaps
        limit_descriptors(highest);
        for (int fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC); fd >= 0; fd = ::dup(fd)) taken_.push_back(fd);
    }
    no_descriptor_left(const no_descriptor_left&) = delete;
    no_descriptor_left& operator=(const no_descriptor_left&) = delete;
    ~no_descriptor_left() { give_back(); }

    void give_back() {
        for (const int fd : taken_) (void)::close(fd);
        taken_.clear();
    }

 private:
    std::vector<int> taken_;
};

std::string answer_without_descriptors(const std::filesystem::path& d) {
    auto lock = fslock::acquire(d / "y");  // the background context has what it needs from now on
    fslock::error_code ec;
    {
        const no_descriptor_left now;
        const auto none = fslock::try_acquire(d / "x", patience, minutes(), ec);
        if (none) return "a lock without a descriptor";
    }
    if (ec != os_error(EMFILE)) return "not the error of the system: " + ec.message();
    if (!lock.verify()) return "the other lock is lost";
    lock.release();
    return obtainable(d / "x");
}

/// A lock that was granted when the last descriptor went, on a context that never had a timer.
std::string run_without_descriptors(const std::filesystem::path& p) {
    (void)fslock::try_acquire(p, patience);  // from now on its directory is known
    asio::io_context io;
    std::string words = "no answer";
    fslock::async_acquire(io, p, minutes(), [&](fslock::error_code ec, lock_guard lock) {
        words = ec ? ec.message() : lock ? "" : "no lock";
    });
    const no_descriptor_left now;
    io.poll();
    return words;
}

/// Waits for the lock at `p`, whose owner goes when there is no descriptor left.
std::string wait_and_run_out_of_descriptors(const std::filesystem::path& p) {
    asio::io_context io;
    const asio::steady_timer first_of_its_kind(io);  // so that Asio has the descriptors that its timers need
    told t;
    std::string words = "no answer";
    bool answered = false;
    lock_guard got;
    fslock::async_acquire(io, p, t.listening(minutes()), [&](fslock::error_code ec, lock_guard lock) {
        answered = true;
        words = ec.message();
        got = std::move(lock);
    });
    const auto run_until = [&](auto condition) {
        return eventually([&] { return (void)io.run_one_for(10ms), condition(); });
    };
    if (!run_until([&] { return t.has(fslock::event_kind::waiting); })) return "no wait";
    const no_descriptor_left now;
    std::filesystem::remove(p);
    (void)run_until([&] { return answered; });
    if (!got || !got.verify()) return words;
    fslock::error_code ec;
    got.release(ec);
    return ec ? ec.message() : "";
}

}  // namespace

BOOST_AUTO_TEST_SUITE(limits)

BOOST_AUTO_TEST_CASE(no_descriptor_left_is_the_systems_error_at_once,
                     *boost::unit_test::precondition(no_sanitizer)) {
    const directory d;
    BOOST_TEST(in_child([&] { return answer_without_descriptors(d.path()); }) == "");
    BOOST_TEST(d.empty());
}

BOOST_AUTO_TEST_CASE(no_descriptor_left_is_no_exception_out_of_run,
                     *boost::unit_test::precondition(no_sanitizer)) {  // F10
    const directory d;
    BOOST_TEST(in_child([&] { return run_without_descriptors(d / "x"); }) == "");
    BOOST_TEST(d.empty());
}

BOOST_AUTO_TEST_CASE(a_waiter_gets_and_releases_its_lock_with_the_descriptors_that_it_has,
                     *boost::unit_test::precondition(no_sanitizer)) {
    const directory d;
    child owner(live_on);
    seed_record(owner.pid()).write(d / "x");
    BOOST_TEST(in_child([&] { return wait_and_run_out_of_descriptors(d / "x"); }) == "");
    BOOST_TEST(d.empty());
}

namespace {

constexpr int many = 150;

std::string name_of(int i) {
    return "lock-" + std::to_string(i);
}

int guarded_among(const std::filesystem::path& d) {
    int n = 0;
    for (int i = 0; i < many; ++i)
        n += read_file(d / name_of(i)).find("\"guard\"") != std::string::npos ? 1 : 0;
    return n;
}

/// More locks than descriptors: says what is not as it has to be, once others have looked at them.
std::string hold_more_than_descriptors(const std::filesystem::path& d,
                                       const std::function<void()>& others_look) {
    limit_descriptors(128);
    std::vector<lock_guard> locks;
    std::vector<std::string> first_beats;
    for (int i = 0; i < many; ++i) {
        locks.push_back(fslock::acquire(d / name_of(i), minutes()));
        first_beats.push_back(field_of(read_file(d / name_of(i)), "heartbeat_at_ms"));
    }
    const int guarded = guarded_among(d);
    if (guarded == 0 || guarded > 100) return std::to_string(guarded) + " keep a descriptor";
    others_look();
    for (int i = 0; i < many; ++i) {
        const auto& first = first_beats[static_cast<std::size_t>(i)];
        if (!eventually([&] { return field_of(read_file(d / name_of(i)), "heartbeat_at_ms") > first; }))
            return name_of(i) + " does not beat";
    }
    for (auto& lock : locks) {
        if (!lock.verify()) return lock.path().native() + " is lost";
        lock.release();
    }
    return {};
}

}  // namespace

BOOST_AUTO_TEST_CASE(locks_beyond_the_budget_of_descriptors_carry_no_witness_and_work,
                     *boost::unit_test::precondition(threads_in_children)) {  // K04
    const directory d;
    child owner([&](child::pipe_to_parent& parent) {
        const auto words = hold_more_than_descriptors(d.path(), [&] {
            parent.say('l');
            (void)parent.hear();
        });
        for (const char letter : words) parent.say(letter);
        parent.say('\0');
    });
    std::string words;
    if (const char first = owner.hear(); first != 'l') words += first;
    if (words.empty()) {
        for (int i = 0; i < many; ++i) BOOST_TEST(!fslock::try_acquire(d / name_of(i), 1ms, minutes()));
        owner.say('!');
    }
    for (char letter = owner.hear(); letter != '\0'; letter = owner.hear()) words += letter;
    BOOST_TEST(words == "");
    BOOST_TEST(d.empty());
}

// ---- half-way -----------------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(an_acquisition_that_fails_half_way_leaves_no_file_and_no_descriptor,
                     *boost::unit_test::precondition(threads_in_children)) {  // F11
    const directory d;
    for (const auto durability : {fslock::durability::relaxed, fslock::durability::full}) {
        auto o = minutes();
        o.durability = durability;
        const auto words = in_child([&] {
            (void)std::signal(SIGXFSZ, SIG_IGN);
            const rlimit nothing{0, RLIM_INFINITY};
            rlimit before{};
            (void)::getrlimit(RLIMIT_FSIZE, &before);
            auto problems = obtainable(d / "x", o);
            (void)::setrlimit(RLIMIT_FSIZE, &nothing);
            problems += refused(d.path(), d / "x", os_error(EFBIG), o);
            const auto descriptors = open_descriptors();
            for (int i = 0; i < 5'000; ++i) {
                fslock::error_code ec;
                const auto lock = fslock::try_acquire(d / "x", patience, o, ec);
                if (lock || ec != os_error(EFBIG)) return problems + "another answer: " + ec.message();
            }
            if (!eventually([&] { return open_descriptors() == descriptors; }))
                problems += "descriptors are left\n";
            (void)::setrlimit(RLIMIT_FSIZE, &before);
            return problems + obtainable(d / "x", o);
        });
        BOOST_TEST(words == "");
        BOOST_TEST(d.empty());
    }
}

BOOST_AUTO_TEST_CASE(waits_in_vain_and_takeovers_leave_no_descriptor) {  // F11, G14
    const directory d;
    child owner(live_on);
    seed_record(owner.pid()).write(d / "held");
    const auto turn = [&] {
        BOOST_TEST(!fslock::try_acquire(d / "held", 1ms, minutes()));
        seed_record(dead_pid).write(d / "dead", 2h);
        BOOST_TEST(static_cast<bool>(fslock::try_acquire(d / "dead", patience, minutes())));
    };
    turn();
    const auto descriptors = open_descriptors();
    for (int i = 0; i < 200; ++i) turn();
    BOOST_TEST(eventually([&] { return open_descriptors() <= descriptors; }));
    BOOST_TEST(d.names() == std::vector<std::string>{"held"}, boost::test_tools::per_element());
}

// ---- a second time ------------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(whoever_asks_again_after_an_error_finds_nobody_in_line) {
    const directory d;
    int without_an_attempt = 0;
    for (int i = 0; i < 500; ++i) {
        // What is not known yet is answered by another thread, which may still be at it when we go on.
        const auto sub = d / fresh_name();
        std::filesystem::create_directory(sub);
        write_file(sub / "x", "content");
        fslock::error_code first;
        fslock::error_code second;
        (void)fslock::try_acquire(sub / "x", patience, minutes(), first);
        (void)fslock::try_acquire_once(sub / "x", minutes(), second);
        BOOST_TEST_REQUIRE((first == fslock::errc::not_a_lock_file));
        if (first != second) ++without_an_attempt;
    }
    BOOST_TEST(without_an_attempt == 0);
}

BOOST_AUTO_TEST_CASE(a_guard_that_was_released_or_moved_from_leaves_the_next_owner_alone) {  // F05
    const directory d;
    auto first = fslock::acquire(d / "x", minutes());
    auto moved = std::move(first);
    first.release();  // NOLINT: a guard that was moved from owns nothing
    BOOST_TEST(moved.verify());
    moved.release();
    auto next = fslock::acquire(d / "x", minutes());
    fslock::error_code ec;
    moved.release(ec);
    BOOST_TEST(!ec);
    moved.release();
    BOOST_TEST(!moved.verify());
    BOOST_TEST(moved.path().empty());
    BOOST_TEST(moved.writer_epoch().empty());
    { const auto gone = std::move(moved); }
    BOOST_TEST(next.verify());
    next = lock_guard();
    BOOST_TEST(d.empty());
}

BOOST_AUTO_TEST_CASE(a_guard_whose_lock_went_to_another_leaves_it_alone) {  // F05, F01, F12
    for (const auto witness : {fslock::witness::automatic, fslock::witness::off}) {
        const directory d;
        auto o = minutes();
        o.witness = witness;
        o.heartbeat_interval = 1h;  // no beat tells before the release does
        auto lock = fslock::acquire(d / "x", o);
        std::filesystem::remove(d / "x");
        child thief(live_on);
        seed_record(thief.pid()).write(d / "x");
        const auto before = picture_of(d.path());
        fslock::error_code ec;
        lock.release(ec);
        BOOST_TEST((ec == fslock::errc::lost));
        lock.release(ec);
        BOOST_TEST(!ec);
        BOOST_TEST(picture_of(d.path()) == before, boost::test_tools::per_element());
    }
}

BOOST_AUTO_TEST_CASE(a_relative_path_means_the_directory_of_the_call,
                     *boost::unit_test::precondition(threads_in_children)) {  // H11
    const directory d;
    const directory elsewhere;
    const auto words = in_child([&] {
        child thief(live_on);
        std::filesystem::current_path(d.path());
        auto lock = fslock::acquire("x", minutes());
        std::filesystem::current_path(elsewhere.path());
        seed_record(thief.pid()).write(elsewhere / "x");
        const auto before = picture_of(elsewhere.path());
        const auto first = field_of(read_file(d / "x"), "heartbeat_at_ms");
        std::string problems = lock.path() == d / "x" ? "" : "another path\n";
        if (!eventually([&] { return field_of(read_file(d / "x"), "heartbeat_at_ms") > first; }))
            problems += "no beat\n";
        if (lock.lost() || !lock.verify()) problems += "lost\n";
        lock.release();
        if (!d.empty()) problems += "not removed\n";
        if (picture_of(elsewhere.path()) != before) problems += "its namesake was touched\n";
        return problems;
    });
    BOOST_TEST(words == "");
}

BOOST_AUTO_TEST_SUITE_END()
