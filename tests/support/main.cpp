// The main of every test program. Closes with a line that a script can add up.
#define BOOST_TEST_MODULE fslock
#include <boost/test/results_collector.hpp>
#include <boost/test/unit_test.hpp>

#include <cstdio>

namespace {

/// Late enough for the results to be there: after the results collector, whose priority is 3.
struct counting : boost::unit_test::test_observer {
    counting() { boost::unit_test::framework::register_observer(*this); }
    int priority() override { return 10; }
    void test_finish() override {
        using namespace boost::unit_test;
        const auto& r = results_collector.results(framework::master_test_suite().p_id);
        std::printf("%lu passed, %lu failed, %lu skipped\n",
                    static_cast<unsigned long>(r.p_test_cases_passed + r.p_test_cases_warned),
                    static_cast<unsigned long>(r.p_test_cases_failed),
                    static_cast<unsigned long>(r.p_test_cases_skipped));
        std::fflush(stdout);
    }
};

counting at_the_end;

}  // namespace
