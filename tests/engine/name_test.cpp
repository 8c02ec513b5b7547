// Who we are, whatever our process is called.
#include <sys/prctl.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>

#include "asking.hpp"
#include "crafted.hpp"
#include "fslock/fslock.hpp"
#include "support/directory.hpp"

using namespace support;

BOOST_AUTO_TEST_CASE(a_process_may_have_any_name, *boost::unit_test::precondition(linux_facilities) *
                                                      boost::unit_test::precondition(threads_in_children)) {
    const directory d;
    const auto words = in_child([&]() -> std::string {
        (void)::prctl(PR_SET_NAME, "a) R 1 (b");
        const auto lock = fslock::acquire(d / "x");
        const auto written = field_of(read_file(d / "x"), "process_start_time");
        return written == start_time_of(::getpid()) ? "" : "the start time is " + written;
    });
    BOOST_TEST(words == "");
}
