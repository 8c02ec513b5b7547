// Programs that end while a call hangs in which nobody is interested any more: they wait for what it leaves behind.
#include <sys/types.h>

#include <asio/io_context.hpp>
#include <boost/test/unit_test.hpp>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "engine/asking.hpp"
#include "loop.hpp"
#include "support/child.hpp"

namespace {

using namespace support;
namespace asio = fslock::asio;
namespace ut = boost::unit_test;
using fslock::lock_guard;
using stalling::call;

/// Whether the first thread of a process sleeps, or has ended.
bool rests(pid_t pid) {
    const auto stat = read_file("/proc/" + std::to_string(pid) + "/stat");
    const auto state = stat.find_first_not_of(' ', stat.rfind(')') + 1);
    return state != std::string::npos && (stat[state] == 'S' || stat[state] == 'Z');
}

/// The program holds `held` unless it is null, and asks for another lock; its record is being linked when interest in
/// it is lost, as `lose_interest` does it.
void nothing_stays_after_exit(const char* held,
                              void (*lose_interest)(std::unique_ptr<asio::io_context>& io, request& hung)) {
    stalling_mount m;
    (void)std::fflush(nullptr);  // what is buffered here would be written once more by the child
    child program([&](child::pipe_to_parent& parent) {
        static request holder, hung;
        static auto io = std::make_unique<asio::io_context>();
        if (held != nullptr) hold(*io, m / held, never_beats(), holder);
        m.stall({call::link});
        hang_at(*io, m, m / "x", hung);
        lose_interest(io, hung);
        holder.lock = lock_guard();
        parent.say('e');
        std::exit(0);
    });
    BOOST_TEST_REQUIRE(program.hear() == 'e');
    BOOST_TEST(eventually([&] { return rests(program.pid()); }));
    m.go_on();
    BOOST_TEST(program.wait() == 0);
    BOOST_TEST(m.names() == std::vector<std::string>(), boost::test_tools::per_element());
}

void cancel(std::unique_ptr<asio::io_context>& io, request& hung) {
    hung.cancel();
    BOOST_TEST_REQUIRE(run_until(*io, [&] { return hung.done(); }));
}

void destroy_context(std::unique_ptr<asio::io_context>& io, request&) {
    io.reset();
}

/// It goes when the program has begun to end.
void leave_it_to_exit(std::unique_ptr<asio::io_context>&, request&) {}

}  // namespace

BOOST_AUTO_TEST_SUITE(exits, *ut::precondition(fuse_mounts) * ut::precondition(threads_in_children) *
                                  ut::precondition(no_leak_checker))

BOOST_AUTO_TEST_CASE(an_exit_waits_for_acquisitions_in_which_nobody_is_interested) {
    for (auto* const how : {cancel, destroy_context, leave_it_to_exit}) nothing_stays_after_exit(nullptr, how);
}

BOOST_AUTO_TEST_CASE(an_acquisition_does_not_wait_for_an_exit_that_waits_for_a_release_behind_it) {
    for (auto* const how : {cancel, destroy_context}) nothing_stays_after_exit("held", how);
}

BOOST_AUTO_TEST_SUITE_END()
