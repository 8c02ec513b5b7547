// How many contend for a lock, and for how long each stays out of the way of the others.
#include "core/crowd.hpp"

#include <boost/test/unit_test.hpp>

namespace {

using namespace std::chrono_literals;
using fslock::core::crowd;
using fslock::core::steady;

constexpr auto began = steady() + 1h;

fslock::core::record owner(int pid, std::uint64_t pid_ns = 1) {
    fslock::core::record r;
    r.pid = pid;
    r.pid_ns = pid_ns;
    return r;
}

crowd crowd_of(int count, steady::duration turn) {
    crowd c;
    for (int i = 0; i < count; ++i) c.saw(owner(100 + i), began);
    c.took(2, 2 * turn);  // two watched
    return c;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(in_a_crowd)

BOOST_AUTO_TEST_CASE(a_few_stay_where_they_are) {
    BOOST_TEST(!crowd_of(3, 1ms).is_one());
    BOOST_TEST(crowd_of(4, 1ms).is_one());
    BOOST_TEST((crowd().rest(began) == 0ms));
    BOOST_TEST((crowd_of(3, 1ms).rest(began) == 0ms));
}

BOOST_AUTO_TEST_CASE(one_of_many_stays_away_while_all_but_a_few_have_their_turns) {
    BOOST_TEST((crowd_of(24, 1ms).rest(began) == 22ms));
    BOOST_TEST((crowd_of(24, 2ms).rest(began) == 44ms));
    BOOST_TEST((crowd_of(24, 1h).rest(began) == 1s));
}

BOOST_AUTO_TEST_CASE(who_comes_again_counts_once) {
    auto c = crowd_of(3, 1ms);
    for (int i = 0; i < 100; ++i) c.saw(owner(100 + i % 3), began);
    BOOST_TEST((c.rest(began) == 0ms));
    c.saw(owner(100, 2), began);  // the same number in another container
    BOOST_TEST((c.rest(began) == 2ms));
}

BOOST_AUTO_TEST_CASE(who_did_not_come_again_is_forgotten) {
    auto c = crowd_of(24, 1ms);
    c.saw(owner(100), began + 9s);
    BOOST_TEST((c.rest(began + 9s) == 22ms));
    BOOST_TEST((c.rest(began + 11s) == 0ms));
}

BOOST_AUTO_TEST_CASE(turns_count_as_they_were_lately) {
    auto c = crowd_of(24, 1ms);
    for (int i = 0; i < 100; ++i) c.took(2, 10ms);
    BOOST_TEST((c.rest(began) > 109ms && c.rest(began) <= 110ms));
}

BOOST_AUTO_TEST_CASE(whoever_waits_for_long_among_those_who_watch_has_not_seen_them_all) {
    auto c = crowd_of(24, 1ms);
    for (int i = 0; i < 100; ++i) c.took(13, 13ms);
    BOOST_TEST((c.rest(began) > 31ms && c.rest(began) <= 33ms));
}

BOOST_AUTO_TEST_CASE(a_lock_that_is_free_among_those_who_stay_away_says_that_they_are_fewer) {
    auto c = crowd_of(24, 1ms);
    c.was_too_cautious();
    BOOST_TEST((c.rest(began) == 10ms));
    c.was_too_cautious();
    c.was_too_cautious();
    BOOST_TEST((c.rest(began) == 0ms));
}

BOOST_AUTO_TEST_CASE(all_of_them_together_look_as_often_as_one_can_be_woken) {
    BOOST_TEST((crowd_of(24, 1ms).between_looks() == 24 * 100us));
    BOOST_TEST((crowd_of(240, 1ms).between_looks() == 240 * 100us));
}

BOOST_AUTO_TEST_CASE(a_crowd_without_end_is_counted_up_to_a_limit) {
    auto c = crowd_of(5000, 1us);
    BOOST_TEST((c.between_looks() == 1024 * 100us));
}

BOOST_AUTO_TEST_SUITE_END()
