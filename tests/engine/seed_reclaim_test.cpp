// What the first implementation tests of removing a dead owner's record, and of the token that is held
// meanwhile; one case for each of its tests (named behind the case).
#include <boost/test/unit_test.hpp>

#include "asking.hpp"
#include "core/contend.hpp"
#include "core/reclaim.hpp"
#include "crafted.hpp"
#include "fslock/fslock.hpp"
#include "os/posix_world.hpp"

namespace fslock::core {

inline std::ostream& boost_test_print_type(std::ostream& out, reclaiming r) {
    static constexpr const char* words[] = {"clear",   "removed",   "changed", "busy",
                                            "blocked", "cancelled", "failed"};
    return out << words[static_cast<int>(r)];
}

inline std::ostream& boost_test_print_type(std::ostream& out, fate f) {
    return out << "fate " << static_cast<int>(f);
}

}  // namespace fslock::core

namespace {

using namespace support;
namespace core = fslock::core;
namespace os = fslock::os;
using core::reclaiming;
using fslock::event_kind;

// ---- the steps of the protocol, one by one ------------------------------------------------------------------

class impatient final : public core::deaf_sleeper {
 public:
    os::call<core::wake> sleep(core::steady) override { return core::wake::due; }
};

class nobody_listens final : public core::reporter {
 public:
    void report(fslock::event) override {}
};

core::task<os::result<os::directory_facts>> classify(os::world& w, std::string path) {
    co_return co_await w.classify(path);
}

/// A contender for the lock at `path` that can be led through single steps, on the real filesystem.
class steps {
 public:
    explicit steps(const std::filesystem::path& path) {
        BOOST_REQUIRE(!core::split(path, place_.lock));
        const std::string directory(place_.lock.directory());
        const auto facts = core::run_to_end(classify(world_, directory));
        BOOST_REQUIRE(static_cast<bool>(facts));
        place_.where = std::make_shared<core::directory>(directory, *facts);
        contender_.emplace(world_, place_, options_, sleeper_, reporter_, seen_);
    }

    core::finding look() {
        return core::run_to_end(core::examine(world_, place_, place_.path(), core::subject::lock, options_,
                                              seen_.lock, contender_->mine));
    }
    reclaiming reclaim(const core::finding& dead) {
        return core::run_to_end(core::reclaim(*contender_, dead)).state;
    }

 private:
    os::world& world_ = os::this_world();
    const fslock::options options_ = minutes();
    core::place place_;
    impatient sleeper_;
    nobody_listens reporter_;
    core::sightings seen_;
    std::optional<core::contender> contender_;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(reclaiming_as_the_first_implementation)

// reclaim_refuses_to_delete_a_different_owners_lock
BOOST_AUTO_TEST_CASE(a_record_that_took_the_place_of_the_judged_one_is_not_removed) {
    for (const bool same_inode : {false, true}) {
        const directory d;
        peer_record(dead_pid).write(d / "x", 2h);
        steps s(d / "x");
        const auto judged = s.look();
        BOOST_TEST_REQUIRE(judged.judged.what == core::fate::dead);
        const auto owner_b = peer_record(dead_pid).text("writer_epoch", "4242-1800000000000000002");
        owner_b.write(d / (same_inode ? "x" : "b"), 2h);
        if (!same_inode) std::filesystem::rename(d / "b", d / "x");
        const auto outcome = s.reclaim(judged);
        BOOST_TEST((outcome == reclaiming::changed || outcome == reclaiming::busy));
        BOOST_TEST(read_file(d / "x") == owner_b.line());
        BOOST_TEST(d.names() == std::vector<std::string>{"x"}, boost::test_tools::per_element());
    }
}

// reclaim_deletes_when_identity_still_matches
BOOST_AUTO_TEST_CASE(a_record_that_is_still_the_judged_one_is_removed_and_a_second_time_nothing_is) {
    const directory d;
    seed_record(dead_pid).write(d / "x", 11min);
    steps s(d / "x");
    const auto judged = s.look();
    BOOST_TEST_REQUIRE(judged.judged.what == core::fate::dead);
    BOOST_TEST(s.reclaim(judged) == reclaiming::removed);
    BOOST_TEST(d.empty());
    BOOST_TEST(s.reclaim(judged) == reclaiming::changed);
    BOOST_TEST(d.empty());
}

// ---- the token ----------------------------------------------------------------------------------------------

namespace {

/// A dead owner's record, which only a token can keep from being taken over.
class dead_lock : public directory {
 public:
    dead_lock() {
        (void)fslock::try_acquire(lock(), patience);  // a directory that is known is not looked at elsewhere
        seed_record(dead_pid).write(lock(), 11min);
    }
    [[nodiscard]] const std::string& name() const { return name_; }
    [[nodiscard]] std::filesystem::path lock() const { return *this / name_; }
    [[nodiscard]] std::filesystem::path token() const { return *this / ('.' + name_ + ".reclaim"); }

 private:
    const std::string name_ = fresh_name();
};

/// Whether one attempt leaves record and token alone.
bool is_kept_from_taking_over(const dead_lock& d, const fslock::options& o = minutes()) {
    const auto before = picture_of(d.path());
    const auto lock = fslock::try_acquire(d.lock(), 1ms, o);
    const auto after = picture_of(d.path());
    BOOST_TEST(after == before, boost::test_tools::per_element());
    return !lock;
}

bool takes_over_and_leaves_nothing(const dead_lock& d, const fslock::options& o = minutes()) {
    auto lock = fslock::try_acquire(d.lock(), patience, o);
    const bool alone = d.names() == std::vector<std::string>{d.name()};
    const bool taken = static_cast<bool>(lock);
    lock = {};
    return taken && alone && d.empty();
}

}  // namespace

// dead_same_host_reclaim_token_is_reaped_with_stale_lock
BOOST_AUTO_TEST_CASE(the_token_of_a_dead_reclaimer_goes_with_the_record) {
    const dead_lock of_a_seed;
    seed_record(dead_pid).write(of_a_seed.token(), 11min);
    BOOST_TEST(takes_over_and_leaves_nothing(of_a_seed));
    const dead_lock of_a_silent_peer;
    peer_record(dead_pid).write(of_a_silent_peer.token(), 11min);
    BOOST_TEST(takes_over_and_leaves_nothing(of_a_silent_peer));
}

// the same, where the common PID namespace proves it at once
BOOST_AUTO_TEST_CASE(the_token_of_a_dead_reclaimer_in_our_pid_namespace_goes_at_once,
                     *boost::unit_test::precondition(linux_facilities)) {
    const dead_lock d;
    peer_record(dead_pid).write(d.token());
    BOOST_TEST(takes_over_and_leaves_nothing(d));
}

// live_reclaim_token_blocks_and_is_untouched
BOOST_AUTO_TEST_CASE(the_token_of_a_living_reclaimer_blocks_and_is_not_touched) {
    const dead_lock d;
    child reclaimer(live_on);
    seed_record(reclaimer.pid()).write(d.token());
    BOOST_TEST(is_kept_from_taking_over(d));
    std::filesystem::remove(d.token());
    BOOST_TEST(takes_over_and_leaves_nothing(d));
}

// foreign_host_reclaim_token_is_authoritative; here it is until it was silent for long enough itself
BOOST_AUTO_TEST_CASE(the_token_of_another_host_blocks_until_it_was_silent_itself) {
    auto o = minutes();
    o.stale_after = o.foreign_stale_after = 5min;
    const dead_lock young;
    foreign_record().write(young.token(), 1min);
    BOOST_TEST(is_kept_from_taking_over(young, o));
    const dead_lock silent;
    foreign_record().write(silent.token(), 6min);
    BOOST_TEST(takes_over_and_leaves_nothing(silent, o));
    const dead_lock silent_for_ten_minutes;
    foreign_record().write(silent_for_ten_minutes.token(), 11min);
    BOOST_TEST(takes_over_and_leaves_nothing(silent_for_ten_minutes, minutes()));
}

// malformed_reclaim_token_is_held_until_older_than_sixty_seconds
BOOST_AUTO_TEST_CASE(a_damaged_token_blocks_for_a_minute) {
    for (const char* const text : {R"({"pid":47)", ""}) {
        auto o = minutes();
        o.malformed_grace = 0ms;  // is that of records, not of tokens
        const dead_lock young;
        write_file(young.token(), text);
        BOOST_TEST(is_kept_from_taking_over(young, o));
        BOOST_TEST(read_file(young.token()) == text);
        const dead_lock old;
        write_file(old.token(), text);
        age_file(old.token(), 61s);
        BOOST_TEST(takes_over_and_leaves_nothing(old, o));
    }
}

// held_reclaim_token_logs_blocked_without_claiming_lock_removal
BOOST_AUTO_TEST_CASE(a_blocked_reclaim_is_reported_with_who_blocks_it_and_not_as_a_removal) {
    const dead_lock d;
    child reclaimer(live_on);
    seed_record(reclaimer.pid()).write(d.token());
    told t;
    const auto before = picture_of(d.path());
    BOOST_TEST_REQUIRE(wait_until_told(d.lock(), t, event_kind::reclaim_blocked, minutes()) == "");
    BOOST_TEST(eventually([&] { return picture_of(d.path()) == before; }));
    const auto blocked = t.of(event_kind::reclaim_blocked)[0];
    BOOST_TEST(blocked.path == d.lock());
    BOOST_TEST(blocked.owner.pid == reclaimer.pid());
    BOOST_TEST(!t.has(event_kind::reclaimed));
}

// dead_unreclaimable_lock_retry_backoff_stays_bounded
BOOST_AUTO_TEST_CASE(tries_behind_a_token_become_rare_and_stay_regular) {
    milliseconds elapsed{0};
    unsigned attempts = 0;
    while (elapsed < 60s) elapsed += core::blocked_backoff(attempts++, 100ms);
    BOOST_TEST(attempts <= 17U);
    BOOST_TEST((core::blocked_backoff(0, 100ms) == 250ms));
    BOOST_TEST((core::blocked_backoff(20, 100ms) == 5s));
    BOOST_TEST((core::blocked_backoff(4'000'000'000U, 100ms) == 5s));
}

BOOST_AUTO_TEST_SUITE_END()
