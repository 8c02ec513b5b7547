// What threads of the pool do with the watches of a context while it is told of a fork.
#include "engine/watcher.hpp"

#include <unistd.h>

#include <asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include "asking.hpp"
#include "support/child.hpp"
#include "support/directory.hpp"
#include "support/run_until.hpp"

namespace {

using namespace support;
namespace asio = fslock::asio;
namespace ut = boost::unit_test;
using fslock::engine::due_kind;
using fslock::engine::watcher;

struct anybody final : fslock::engine::due_item {
    anybody() : due_item(due_kind::wait) {}
};

/// A watcher, a process that it watches, and whether that has ended.
struct watched_process {
    watched_process() { BOOST_TEST_REQUIRE(!w.watch_process(who, process.pid(), [this] { ended = true; })); }

    [[nodiscard]] bool end_is_told() {
        process.kill_and_reap();
        return run_until(io, [this] { return ended; });
    }

    child process{live_on};
    asio::io_context io;
    anybody who;
    bool ended = false;
    watcher w{io.get_executor()};
};

}  // namespace

BOOST_AUTO_TEST_SUITE(watches_in_a_fork, *ut::precondition(linux_facilities))

BOOST_AUTO_TEST_CASE(a_new_one_is_refused_and_the_others_go_on) {
    const directory d;
    watched_process p;
    const auto item = std::make_shared<anybody>();
    write_file(d / "x", "");
    BOOST_TEST_REQUIRE(static_cast<bool>(p.w.watch_record(item, d / "x")));
    const auto before = open_descriptors();
    anybody late;
    for (int fork = 0; fork < 2; ++fork) {
        p.w.before_fork();
        BOOST_TEST(p.w.watch_process(late, ::getpid(), [] {}));
        BOOST_TEST(!p.w.watch_record(item, d / "x"));
        BOOST_TEST(!p.w.watch_directory(d.path()));
        p.w.after_fork_in_parent();
        BOOST_TEST(open_descriptors() == before);
    }
    BOOST_TEST(!p.w.watch_process(late, ::getpid(), [] {}));
    write_file(d / "x", "");
    BOOST_TEST(p.w.read().whom.size() == 1U);
    BOOST_TEST(p.end_is_told());
}

BOOST_AUTO_TEST_CASE(one_that_ends_meanwhile_leaves_no_descriptor) {
    watched_process p;
    const auto before = open_descriptors();
    p.w.before_fork();
    p.w.unwatch_process(p.who);
    p.w.after_fork_in_parent();
    BOOST_TEST(open_descriptors() == before - 1);
}

BOOST_AUTO_TEST_SUITE_END()
