// Breaking a lock by the epoch that was inspected, on real files.
#include <boost/test/unit_test.hpp>

#include <sys/stat.h>

#include <asio/io_context.hpp>

#include "asking.hpp"
#include "crafted.hpp"
#include "support/child.hpp"
#include "support/run_until.hpp"

namespace {

using namespace support;
using boost::unit_test::precondition;
using fslock::break_lock;
using fslock::errc;

std::string epoch_at(const std::filesystem::path& p) {
    const auto info = fslock::inspect(p);
    return info ? info->owner.writer_epoch : std::string();
}

fslock::options without_witness() {
    auto o = minutes();
    o.witness = fslock::witness::off;
    return o;
}

fslock::error_code error_of(const std::filesystem::path& p, const std::string& epoch) {
    fslock::error_code ec;
    BOOST_TEST(!break_lock(p, epoch, ec));
    return ec;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(breaking)

BOOST_AUTO_TEST_CASE(an_owner_is_told_and_its_lock_is_free, *precondition(linux_facilities)) {
    for (const auto& o : {never_beats(), without_witness()}) {
        const directory d;
        asio::io_context io;
        fslock::lock_guard lock;
        fslock::async_acquire(io, d / "x", o, [&](fslock::error_code, fslock::lock_guard got) { lock = std::move(got); });
        BOOST_TEST_REQUIRE(run_until(io, [&] { return static_cast<bool>(lock); }));
        bool told = false;
        lock.async_wait_lost([&](fslock::error_code ec) { told = !ec; });
        BOOST_TEST(break_lock(d / "x", epoch_at(d / "x")));
        BOOST_TEST(d.empty());
        BOOST_TEST(static_cast<bool>(fslock::try_acquire_once(d / "x")));
        BOOST_TEST(run_until(io, [&] { return told; }));
        BOOST_TEST(lock.lost());
        fslock::error_code ec;
        lock.release(ec);
        BOOST_TEST(ec == errc::lost);
    }
}

BOOST_AUTO_TEST_CASE(an_owner_that_is_stopped_is_broken_and_finds_out_when_it_goes_on) {  // I06
    const directory d;
    child owner([&](child::pipe_to_parent& parent) {
        auto lock = fslock::acquire(d / "x", minutes());
        parent.say('o');
        (void)parent.hear();
        parent.say(lock.verify() ? 'y' : 'n');
    });
    BOOST_TEST_REQUIRE(owner.hear() == 'o');
    owner.signal(SIGSTOP);
    BOOST_TEST((fslock::inspect(d / "x")->verdict == fslock::liveness::alive));
    BOOST_TEST(!fslock::try_acquire_once(d / "x"));
    BOOST_TEST(break_lock(d / "x", epoch_at(d / "x")));
    const auto lock = fslock::acquire(d / "x");
    owner.signal(SIGCONT);
    owner.say('g');
    BOOST_TEST(owner.hear() == 'n');
    fslock::error_code ec;
    BOOST_TEST(fslock::inspect(d / "x", ec)->owner.writer_epoch == lock.writer_epoch());
}

BOOST_AUTO_TEST_CASE(only_the_epoch_that_is_named_is_broken) {
    const directory d;
    auto lock = fslock::acquire(d / "x");
    const std::string seen(lock.writer_epoch());
    for (const auto& epoch : {std::string(), seen + '0', seen.substr(1)}) BOOST_TEST(!break_lock(d / "x", epoch));
    lock.release();
    BOOST_TEST(!break_lock(d / "x", seen));
    const auto next = fslock::acquire(d / "x");
    BOOST_TEST(!break_lock(d / "x", seen));
    fslock::error_code ec;
    BOOST_TEST(fslock::inspect(d / "x", ec)->owner.writer_epoch == next.writer_epoch());
}

BOOST_AUTO_TEST_CASE(the_record_of_a_peer_goes_whatever_its_verdict) {
    for (const auto& r : {seed_record(::getpid()), seed_record(dead_pid), peer_record(dead_pid), foreign_record()}) {
        const directory d;
        r.write(d / "x");
        auto epoch = field_of(r.line(), "writer_epoch");
        epoch = epoch.substr(1, epoch.size() - 2);
        BOOST_TEST(break_lock(d / "x", epoch), r.line());
        BOOST_TEST(d.empty());
    }
}

BOOST_AUTO_TEST_CASE(what_is_no_record_is_what_the_system_says_and_stays) {
    const directory d;
    BOOST_TEST(!error_of(d / "x", "1-1"));
    BOOST_TEST(error_of("", "1-1") == os_error(ENOENT));
    BOOST_TEST(error_of(d / "sub/x", "1-1") == os_error(ENOENT));
    BOOST_TEST(error_of(d.path() / "", "1-1") == os_error(EISDIR));
    BOOST_TEST(error_of(std::string("a\0b", 3), "1-1") == os_error(EINVAL));
    BOOST_TEST(error_of(d / ".x.reclaim", "1-1") == errc::reserved_name);
    write_file(d / "letter", "a letter");
    std::filesystem::create_directory(d / "sub");
    std::filesystem::create_symlink("letter", d / "link");
    for (const auto* name : {"letter", "sub", "link"}) BOOST_TEST(error_of(d / name, "1-1") == errc::not_a_lock_file);
    BOOST_TEST(read_file(d / "letter") == "a letter");
    write_file(d / "empty", "");
    BOOST_TEST(!break_lock(d / "empty", ""));
    BOOST_TEST(d.names().size() == 4U);
}

BOOST_AUTO_TEST_CASE(somebody_who_holds_the_token_is_named) {
    const directory d;
    const auto lock = fslock::acquire(d / "x");
    child reclaimer(live_on);
    peer_record(reclaimer.pid()).write(d / ".x.reclaim");
    try {
        (void)break_lock(d / "x", lock.writer_epoch());
        BOOST_ERROR("not blocked");
    } catch (const fslock::system_error& e) {
        BOOST_TEST(e.code() == os_error(EBUSY));
        BOOST_TEST(std::string(e.what()).find("pid " + std::to_string(reclaimer.pid())) != std::string::npos, e.what());
    }
    BOOST_TEST(d.names().size() == 2U);
}

BOOST_AUTO_TEST_CASE(the_record_of_another_user_who_lives_is_denied, *precondition(two_users)) {
    const directory d;
    auto o = minutes();
    o.mode = 0644;
    const auto lock = fslock::acquire(d / "x", o);
    (void)::chmod(d.path().c_str(), 0777);
    const std::string epoch(lock.writer_epoch());
    const auto words = without_privileges([&] {
        fslock::error_code ec;
        const bool removed = break_lock(d / "x", epoch, ec);
        return removed ? "removed" : ec.message();
    });
    BOOST_TEST(words == os_error(EACCES).message());
    BOOST_TEST(d.names().size() == 1U);
}

BOOST_AUTO_TEST_SUITE_END()
