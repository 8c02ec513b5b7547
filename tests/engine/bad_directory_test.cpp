// Directories that do not let us, and files of other users: the system's own error, at once, and nothing is
// lost.
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <fstream>

#include "asking.hpp"
#include "crafted.hpp"

namespace {

using namespace support;
using boost::unit_test::precondition;
using fslock::errc;

constexpr uid_t nobody = 65534;

/// A directory that the user of `without_privileges` owns.
struct directory_of_nobody : directory {
    explicit directory_of_nobody(mode_t mode) {
        if (::geteuid() == 0) (void)::chown(path().c_str(), nobody, nobody);
        (void)::chmod(path().c_str(), mode);
    }
};

/// Writes to `p` until there is no space.
void fill(const std::filesystem::path& p) {
    const int fd = ::open(p.c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
    const std::string page(4096, 'x');
    while (::write(fd, page.data(), page.size()) > 0) {
    }
    (void)::close(fd);
}

/// What `problems` says, and what `lock` says of itself.
std::string and_holds(std::string problems, fslock::lock_guard& lock) {
    fslock::error_code ec;
    if (!lock.verify(ec)) problems += "not held: " + ec.message() + '\n';
    return problems;
}

std::string and_goes(std::string problems, fslock::lock_guard& lock) {
    const auto path = lock.path();
    fslock::error_code ec;
    lock.release(ec);
    if (ec) problems += "release: " + ec.message() + '\n';
    if (std::filesystem::exists(path)) problems += "not removed\n";
    return problems;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(bad_directories)

BOOST_AUTO_TEST_CASE(a_directory_without_permission_to_write_is_denied_and_not_called_held,
                     *precondition(ordinary_user)) {
    // H17
    const directory_of_nobody d(0555);
    const auto words = without_privileges([&] { return refused(d.path(), d / "x", os_error(EACCES)); });
    BOOST_TEST(words == "");
    (void)::chmod(d.path().c_str(), 0755);
    BOOST_TEST(without_privileges([&] { return obtainable(d / "x"); }) == "");
}

BOOST_AUTO_TEST_CASE(a_directory_without_permission_to_search_is_denied, *precondition(ordinary_user)) {
    const directory_of_nobody d(0755);
    std::filesystem::create_directory(d / "sub");
    const directory elsewhere;  // what cannot be looked into cannot be compared
    (void)::chmod(elsewhere.path().c_str(), 0755);
    for (const mode_t mode : {0666, 0000}) {
        (void)::chmod((d / "sub").c_str(), mode);
        const auto words =
            without_privileges([&] { return refused(elsewhere.path(), d / "sub" / "x", os_error(EACCES)); });
        BOOST_TEST(words == "");
    }
    (void)::chmod((d / "sub").c_str(), 0777);
    BOOST_TEST(without_privileges([&] { return obtainable(d / "sub" / "x"); }) == "");
}

BOOST_AUTO_TEST_CASE(a_record_that_we_may_not_read_is_denied_and_never_removed, *precondition(two_users)) {
    // E12, E13, H14
    const directory_of_nobody d(0777);
    fslock::options o;
    o.heartbeat_interval = 1h;  // nothing changes while we compare
    const auto owner = fslock::acquire(d / "held", o);
    seed_record(dead_pid).write(d / "dead", 24h);
    (void)::chmod((d / "dead").c_str(), 0600);
    for (const auto* const name : {"held", "dead"}) {
        BOOST_TEST_CONTEXT(name) {
            const auto words =
                without_privileges([&] { return refused(d.path(), d / name, os_error(EACCES)); });
            BOOST_TEST(words == "");
        }
    }
    BOOST_TEST(obtainable(d / "dead", minutes()) == "");
}

BOOST_AUTO_TEST_CASE(a_readable_record_of_another_user_is_judged_whatever_the_umask_was,
                     *precondition(two_users)) {
    // H14
    const directory_of_nobody d(0777);
    fslock::options o;
    o.mode = 0644;
    const auto umask_before = ::umask(077);
    auto owner = fslock::acquire(d / "x", o);
    (void)::umask(umask_before);
    const auto words = without_privileges([&] {
        fslock::error_code ec;
        const auto lock = fslock::try_acquire(d / "x", 100ms, minutes(), ec);
        return lock ? std::string("stolen") : ec ? ec.message() : std::string();
    });
    BOOST_TEST(words == "");
    owner.release();
    BOOST_TEST(without_privileges([&] { return obtainable(d / "x"); }) == "");
}

BOOST_AUTO_TEST_CASE(a_data_file_of_another_user_is_no_lock, *precondition(two_users)) {
    const directory_of_nobody d(0777);
    write_file(d / "x", "content");
    (void)::chmod((d / "x").c_str(), 0644);
    const auto words = without_privileges([&] { return refused(d.path(), d / "x", errc::not_a_lock_file); });
    BOOST_TEST(words == "");
    BOOST_TEST(read_file(d / "x") == "content");
}

BOOST_AUTO_TEST_CASE(a_dead_owner_whose_record_we_may_not_remove_is_an_error_with_the_cause,
                     *precondition(two_users)) {
    // E11
    const directory d;
    (void)::chmod(d.path().c_str(), 01777);
    seed_record(dead_pid).write(d / "x", 24h);
    (void)::chmod((d / "x").c_str(), 0644);
    const auto words =
        without_privileges([&] { return refused(d.path(), d / "x", os_error(EPERM), minutes()); });
    BOOST_TEST(words == "");
    BOOST_TEST(obtainable(d / "x", minutes()) == "");
}

BOOST_AUTO_TEST_CASE(a_filesystem_that_is_read_only_is_called_so, *precondition(mounts)) {
    const directory d;
    const auto words = on_tmpfs(d.path(), "size=64k", [&] {
        seed_record(dead_pid).write(d / "dead", 24h);
        if (::mount("none", d.path().c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr) != 0)
            return std::string("mount");
        auto problems =
            refused(d.path(), d / "x", os_error(EROFS)) + refused(d.path(), d / "dead", os_error(EROFS));
        (void)::mount("none", d.path().c_str(), nullptr, MS_REMOUNT, "size=64k");
        return problems + obtainable(d / "x") + obtainable(d / "dead", minutes());
    });
    BOOST_TEST(words == "");
}

BOOST_AUTO_TEST_CASE(a_full_disk_is_called_so_until_there_is_space, *precondition(mounts)) {  // G12, F11
    const directory d;
    for (const auto durability : {fslock::durability::relaxed, fslock::durability::full}) {
        fslock::options o = minutes();
        o.durability = durability;
        const auto words = on_tmpfs(d.path(), "size=64k", [&] {
            seed_record(dead_pid).write(d / "dead", 24h);
            fill(d / "filler");
            auto problems = refused(d.path(), d / "x", os_error(ENOSPC), o);
            problems += refused(d.path(), d / "dead", os_error(ENOSPC), o);
            std::filesystem::remove(d / "filler");
            return problems + obtainable(d / "x", o) + obtainable(d / "dead", o);
        });
        BOOST_TEST(words == "");
    }
}

BOOST_AUTO_TEST_CASE(an_owner_beats_and_releases_on_a_full_disk, *precondition(mounts)) {  // G12
    const directory d;
    const auto words = on_tmpfs(d.path(), "size=64k", [&] {
        told t;
        auto lock = fslock::acquire(d / "x", t.listening(minutes()));
        fill(d / "filler");
        const auto first = field_of(read_file(d / "x"), "heartbeat_at_ms");
        const bool beats = eventually([&] { return field_of(read_file(d / "x"), "heartbeat_at_ms") != first; });
        auto problems = and_goes(and_holds(beats ? "" : "no heartbeat\n", lock), lock);
        if (!t.all().empty()) problems += to_string(t.all()[0]);
        return problems;
    });
    BOOST_TEST(words == "");
}

BOOST_AUTO_TEST_CASE(a_filesystem_without_inodes_is_full_as_well, *precondition(mounts)) {  // G12
    const directory d;
    const auto words = on_tmpfs(d.path(), "size=1m,nr_inodes=16", [&] {
        auto lock = fslock::acquire(d / "x");
        std::filesystem::create_directory(d / "sub");
        for (int i = 0; i < 16; ++i) (void)std::ofstream(d / "sub" / std::to_string(i));
        auto problems = refused(d.path(), d / "y", os_error(ENOSPC));
        problems = and_goes(and_holds(std::move(problems), lock), lock);
        std::filesystem::remove_all(d / "sub");
        return problems + obtainable(d / "y");
    });
    BOOST_TEST(words == "");
}

BOOST_AUTO_TEST_SUITE_END()
