// Who gets a lock that another process wants again and again.
#include <boost/test/unit_test.hpp>

#include <chrono>

#include "fslock/fslock.hpp"
#include "support/child.hpp"
#include "support/directory.hpp"
#include "support/filesystem.hpp"

namespace {

using namespace std::chrono_literals;

/// Where the kernel does not wake a waiter, who looks when the lock happens to be free is next.
boost::test_tools::assertion_result locks_on_bytes(boost::unit_test::test_unit_id) {
    boost::test_tools::assertion_result possible(support::has_byte_locks());
    possible.message() << "waiters cannot show themselves here: no locks on bytes";
    return possible;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_process_that_takes_turn_after_turn_leaves_some_to_others,  // K02
                     *boost::unit_test::precondition(locks_on_bytes)) {
    const support::directory d;
    support::child greedy([&](support::child::pipe_to_parent& parent) {
        parent.say('g');
        for (;;) (void)fslock::acquire(d / "x").verify();
    });
    BOOST_TEST(greedy.hear() == 'g');
    for (int i = 0; i < 50; ++i) BOOST_TEST_REQUIRE(static_cast<bool>(fslock::try_acquire(d / "x", 20s)), "turn " << i);
}
