// What a forked child does with the files of its parent: nothing, also not when their numbers are used again.
#include <boost/test/unit_test.hpp>

#include <fcntl.h>

#include "core/task.hpp"
#include "os/posix_world.hpp"
#include "support/child.hpp"
#include "support/directory.hpp"

namespace {

using namespace fslock;

core::task<os::result<os::file>> opening(std::string path) {
    co_return co_await os::this_world().open(path, os::access::read_write, os::fs_class::local);
}

os::file open(const std::filesystem::path& path) {
    auto opened = core::run_to_end(opening(path.native()));
    return opened ? std::move(*opened) : os::file();
}

}  // namespace

BOOST_AUTO_TEST_CASE(an_inherited_file_closes_no_descriptor_of_the_child) {
    const support::directory d;
    support::write_file(d / "a", "a");
    support::write_file(d / "b", "b");
    auto inherited = open(d / "a");
    support::child c([&](support::child::pipe_to_parent& parent) {
        const auto own = open(d / "b");
        parent.say(own.handle() == inherited.handle() ? 's' : 'd');
        inherited.close();
        parent.say(::fcntl(own.handle(), F_GETFD) >= 0 ? 'o' : 'c');
    });
    BOOST_TEST(c.hear() == 's', "the number is used again");
    BOOST_TEST(c.hear() == 'o', "the file of the child is open");
}
