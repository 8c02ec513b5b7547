// What a disk that fails for a moment means to those who look: not free, not dead, not lost.
#include <boost/test/unit_test.hpp>

#include <cerrno>
#include <memory>

#include "core/claim.hpp"
#include "core/holder.hpp"
#include "core/read_record.hpp"
#include "failing_world.hpp"
#include "os/posix_world.hpp"
#include "support/directory.hpp"

namespace {

using namespace fslock;
using core::reading;
using core::standing;

std::error_code error(int code) { return {code, std::system_category()}; }

constexpr int passing_faults[] = {EIO, ESTALE};

/// The lock `x` of a directory, held, and a world that can fail.
struct held_in {
    held_in(const support::directory& d, witness kind) {
        options o;
        o.witness = kind;
        where.where = std::make_shared<core::directory>(d.path().native(), os::directory_facts{{}, os::fs_class::local});
        BOOST_REQUIRE(!core::split(d / "x", where.lock));
        core::prepared mine;
        BOOST_REQUIRE(!core::run_to_end(core::claim(world, where, where.path(), o, mine, 0)));
        lock = std::make_unique<core::holder>(where, std::move(mine), world.now());
    }

    standing verify() { return core::run_to_end(lock->verify(world)).now; }

    support::failing_world world{os::this_world()};
    core::place where;
    std::unique_ptr<core::holder> lock;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(errors)

BOOST_AUTO_TEST_CASE(a_failing_read_is_neither_free_nor_lost) {
    for (const int fault : passing_faults) {
        const support::directory d;
        held_in h(d, witness::off);
        h.world.failure = error(fault);
        const auto look = core::run_to_end(core::read_record_at(h.world, h.where.path(), os::fs_class::local));
        BOOST_TEST((look.state == reading::unsteady));
        BOOST_TEST(look.error == error(fault));
        BOOST_TEST((h.verify() == standing::unsure));
        h.world.failure = {};
        BOOST_TEST((h.verify() == standing::ours));
    }
}

BOOST_AUTO_TEST_CASE(a_failing_look_is_no_loss) {
    for (const int fault : {EIO, ESTALE, EACCES, EMFILE}) {
        const support::directory d;
        held_in h(d, witness::automatic);
        h.world.failure = error(fault);
        BOOST_TEST((h.verify() == standing::unsure));
        h.world.failure = {};
        BOOST_TEST((h.verify() == standing::ours));
    }
}

BOOST_AUTO_TEST_SUITE_END()
