// Paths that cannot be locks: bad names, bad directories, and things at the path that no lock wrote. Each is
// refused at once, in every way there is to ask, and nothing changes.
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>

#include "asking.hpp"
#include "crafted.hpp"

namespace {

using namespace support;
using namespace std::string_literals;
using fslock::errc;

/// The answer to what is at a path and is no lock; and the lock once it is out of the way.
void check_refused_until_removed(const directory& d, const std::string& name) {
    BOOST_TEST(refused(d.path(), d / name, errc::not_a_lock_file) == "");
    std::filesystem::remove_all(d / name);
    BOOST_TEST(obtainable(d / name) == "");
}

void make_socket(const std::filesystem::path& p) {
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    p.native().copy(address.sun_path, sizeof address.sun_path - 1);
    BOOST_REQUIRE(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    (void)::close(fd);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(bad_input)

// ---- names --------------------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(an_empty_path_is_nothing) {
    const directory d;
    BOOST_TEST(refused(d.path(), "", os_error(ENOENT)) == "");
}

BOOST_AUTO_TEST_CASE(an_embedded_nul_is_refused_and_does_not_cut_the_path) {
    const directory d;
    BOOST_TEST(refused(d.path(), (d / "x").native() + "\0y"s, os_error(EINVAL)) == "");
    BOOST_TEST(refused(d.path(), d.path().native() + "\0/x"s, os_error(EINVAL)) == "");
}

BOOST_AUTO_TEST_CASE(a_trailing_slash_and_dots_mean_a_directory) {
    const directory d;
    write_file(d / "file", "content");
    for (const auto& path : {d.path().native() + "/x/", (d / "file").native() + "/", d.path().native() + "/.",
                             d.path().native() + "/..", "/"s, "."s, ".."s, "x/"s}) {
        BOOST_TEST_CONTEXT(path) BOOST_TEST(refused(d.path(), path, os_error(EISDIR)) == "");
    }
}

BOOST_AUTO_TEST_CASE(names_of_tokens_and_temps_are_reserved) {  // H09
    const directory d;
    const directory elsewhere;
    auto o = minutes();
    o.heartbeat_interval = std::chrono::hours(1);  // with the first beat comes a descriptor that watches the record
    const auto lock = fslock::acquire(d / "x", o);
    for (const auto* const name : {".x.reclaim", ".X.RECLAIM", ".x.tmp.1.2.3", ".x.Tmp.12.345.6"})
        BOOST_TEST_CONTEXT(name) BOOST_TEST(refused(elsewhere.path(), d / name, errc::reserved_name) == "");
    for (const auto* const name : {"y.reclaim", ".y.tmp.1.2", "..y", "...", ".reclaim.y"})
        BOOST_TEST_CONTEXT(name) BOOST_TEST(obtainable(d / name) == "");
}

BOOST_AUTO_TEST_CASE(a_name_has_room_for_token_and_temp_or_is_refused_at_once) {  // H08
    const directory d;
    auto o = minutes();
    bool refused_before = false;
    for (std::size_t length = 200; length <= 255; ++length) {
        const auto path = d / std::string(length, 'n');
        fslock::error_code ec;
        peer_record(dead_pid).write(path, 2h);
        const auto before = picture_of(d.path());
        auto lock = fslock::try_acquire(path, patience, o, ec);
        if (ec) {
            BOOST_TEST((ec == os_error(ENAMETOOLONG)));
            BOOST_TEST(picture_of(d.path()) == before, boost::test_tools::per_element());
            refused_before = true;
            std::filesystem::remove(path);
            continue;
        }
        BOOST_TEST(!refused_before, "longer names are no better");
        const auto first = field_of(read_file(path), "heartbeat_at_ms");
        BOOST_TEST(eventually([&] { return field_of(read_file(path), "heartbeat_at_ms") != first; }));
        lock.release();
        BOOST_TEST(d.empty());
    }
    BOOST_TEST(refused_before);
    BOOST_TEST(refused(d.path(), d / std::string(255, 'n'), os_error(ENAMETOOLONG)) == "");
    BOOST_TEST(refused(d.path(), d / std::string(256, 'n'), os_error(ENAMETOOLONG)) == "");
}

BOOST_AUTO_TEST_CASE(a_name_is_bytes_and_may_be_any_but_slash_and_nul) {
    const directory d;
    for (const auto* const name : {"\xff\xfe", "\n", " ", "\"}", "\\", "-x", "\x01", "\xe4\xbd\xa0"})
        BOOST_TEST_CONTEXT(name) BOOST_TEST(obtainable(d / name) == "");
}

// ---- directories --------------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(a_missing_directory_is_not_made) {  // H05
    const directory d;
    BOOST_TEST(refused(d.path(), d / "none" / "x", os_error(ENOENT)) == "");
    std::filesystem::create_directory(d / "none");
    BOOST_TEST(obtainable(d / "none" / "x") == "");
}

BOOST_AUTO_TEST_CASE(a_directory_that_went_is_missed_and_one_that_came_again_is_found) {
    const directory d;
    std::filesystem::create_directory(d / "sub");
    BOOST_TEST(obtainable(d / "sub" / "x") == "");  // from now on it is known
    std::filesystem::remove(d / "sub");
    BOOST_TEST(refused(d.path(), d / "sub" / "x", os_error(ENOENT)) == "");
    write_file(d / "sub", "content");
    BOOST_TEST(refused(d.path(), d / "sub" / "x", os_error(ENOTDIR)) == "");
    std::filesystem::remove(d / "sub");
    std::filesystem::create_directory(d / "sub");
    BOOST_TEST(obtainable(d / "sub" / "x") == "");
}

BOOST_AUTO_TEST_CASE(a_directory_that_is_a_file_a_loop_or_too_long_is_what_the_system_says) {  // H07
    const directory d;
    write_file(d / "file", "content");
    BOOST_TEST(refused(d.path(), d / "file" / "x", os_error(ENOTDIR)) == "");
    BOOST_TEST(refused(d.path(), d / "file" / "y" / "x", os_error(ENOTDIR)) == "");
    std::filesystem::create_symlink("b", d / "a");
    std::filesystem::create_symlink("a", d / "b");
    BOOST_TEST(refused(d.path(), d / "a" / "x", os_error(ELOOP)) == "");
    std::filesystem::create_symlink("nothing", d / "dangling");
    BOOST_TEST(refused(d.path(), d / "dangling" / "x", os_error(ENOENT)) == "");
    std::string deep = d.path();
    while (deep.size() < 5000) deep += "/0123456789";
    BOOST_TEST(refused(d.path(), deep, os_error(ENAMETOOLONG)) == "");
    BOOST_TEST(refused(d.path(), d / std::string(300, 'n') / "x", os_error(ENAMETOOLONG)) == "");
}

BOOST_AUTO_TEST_CASE(a_link_to_a_directory_is_a_way_to_it) {
    const directory d;
    std::filesystem::create_directory(d / "real");
    std::filesystem::create_directory_symlink("real", d / "link");
    BOOST_TEST(obtainable(d / "link" / "x") == "");
    const auto lock = fslock::acquire(d / "link" / "x");
    BOOST_TEST(!fslock::try_acquire_once(d / "real" / "x"));
}

// ---- what is at the path ------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(a_directory_is_no_lock_and_is_not_emptied) {  // H01, C12
    const directory d;
    std::filesystem::create_directories(d / "x" / "sub");
    write_file(d / "x" / "sub" / "file", "content");
    BOOST_TEST(refused(d.path(), d / "x", errc::not_a_lock_file) == "");
    const directory with_an_empty_one;
    std::filesystem::create_directory(with_an_empty_one / "x");
    check_refused_until_removed(with_an_empty_one, "x");
}

BOOST_AUTO_TEST_CASE(a_symbolic_link_is_no_lock_whatever_it_leads_to) {  // H02
    const directory d;
    const auto dead = seed_record(dead_pid);
    dead.write(d / "record", 2h);
    write_file(d / "data", "content");
    std::filesystem::create_directory(d / "sub");
    for (const auto* const target : {"record", "data", "sub", "x", "/dev/null"}) {
        BOOST_TEST_CONTEXT(target) {
            std::filesystem::create_symlink(target, d / "x");
            check_refused_until_removed(d, "x");
        }
    }
    BOOST_TEST(read_file(d / "record") == dead.line());
    BOOST_TEST(read_file(d / "data") == "content");
}

BOOST_AUTO_TEST_CASE(a_dangling_symbolic_link_is_no_lock_and_its_target_is_not_made) {  // H02
    const directory d;
    std::filesystem::create_symlink("nothing", d / "x");
    check_refused_until_removed(d, "x");
    BOOST_TEST(d.empty());
}

BOOST_AUTO_TEST_CASE(a_fifo_is_no_lock_and_nobody_waits_for_its_other_end, *boost::unit_test::timeout(60)) {
    const directory d;
    BOOST_REQUIRE(::mkfifo((d / "x").c_str(), 0600) == 0);
    check_refused_until_removed(d, "x");
}

BOOST_AUTO_TEST_CASE(a_socket_is_no_lock) {
    const directory d;
    make_socket(d / "x");
    check_refused_until_removed(d, "x");
}

BOOST_AUTO_TEST_CASE(a_device_is_no_lock, *boost::unit_test::precondition(devices)) {
    const directory d;
    BOOST_REQUIRE(::mknod((d / "x").c_str(), S_IFCHR | 0600, makedev(1, 3)) == 0);
    check_refused_until_removed(d, "x");
}

BOOST_AUTO_TEST_CASE(links_planted_at_the_names_of_temps_redirect_nothing) {  // H18
    const directory d;
    write_file(d / "victim", "content");
    for (const auto* const sequence : {"1", "2", "3"})
        std::filesystem::create_symlink("victim",
                                        d / (".x.tmp." + std::to_string(::getpid()) + ".1." + sequence));
    std::filesystem::create_hard_link(d / "victim", d / (".x.tmp." + std::to_string(::getpid()) + ".1.4"));
    auto before = picture_of(d.path());
    for (const auto durability : {fslock::durability::relaxed, fslock::durability::full}) {
        auto o = minutes();
        o.durability = durability;
        BOOST_TEST(obtainable(d / "x", o) == "");
        seed_record(dead_pid).write(d / "x", 2h);
        BOOST_TEST(static_cast<bool>(fslock::try_acquire(d / "x", patience, o)));
    }
    BOOST_TEST(picture_of(d.path()) == before, boost::test_tools::per_element());
}

// ---- what is at the token's name ----------------------------------------------------------------------------

namespace {

struct thing {
    const char* name;
    void (*make)(const std::filesystem::path&);
};

constexpr thing things[] = {
    {"a directory", [](const std::filesystem::path& p) { std::filesystem::create_directories(p / "sub"); }},
    {"a symbolic link", [](const std::filesystem::path& p) { std::filesystem::create_symlink("victim", p); }},
    {"a dangling link", [](const std::filesystem::path& p) { std::filesystem::create_symlink("nothing", p); }},
    {"a fifo", [](const std::filesystem::path& p) { (void)::mkfifo(p.c_str(), 0600); }},
    {"a socket", make_socket},
    {"data", [](const std::filesystem::path& p) { write_file(p, "{ malformed"); }},
};

}  // namespace

BOOST_AUTO_TEST_CASE(
    what_is_at_the_tokens_name_and_is_no_token_is_an_error_of_a_takeover_only) {  // E20, E09, H18
    for (const auto& t : things) {
        BOOST_TEST_CONTEXT(t.name) {
            const directory d;
            write_file(d / "victim", seed_record(dead_pid).line());
            t.make(d / ".x.reclaim");
            if (!std::filesystem::is_symlink(d / ".x.reclaim")) age_file(d / ".x.reclaim", 2h);
            auto before = picture_of(d.path());
            BOOST_TEST(obtainable(d / "x", minutes()) == "");  // a free lock needs no token
            BOOST_TEST(picture_of(d.path()) == before, boost::test_tools::per_element());
            seed_record(dead_pid).write(d / "x", 2h);
            BOOST_TEST(refused(d.path(), d / "x", errc::not_a_lock_file, minutes()) == "");
            std::filesystem::remove_all(d / ".x.reclaim");
            BOOST_TEST(obtainable(d / "x", minutes()) == "");
        }
    }
}

BOOST_AUTO_TEST_CASE(an_empty_token_blocks_for_its_grace_and_goes) {  // E20
    const directory d;
    for (const std::chrono::seconds age : {0s, 61s}) {
        const auto name = fresh_name();
        const auto token = d / ('.' + name + ".reclaim");
        write_file(token, "");
        age_file(token, age);
        BOOST_TEST(obtainable(d / name, minutes()) == "");
        seed_record(dead_pid).write(d / name, 2h);
        const milliseconds limit = age == 0s ? 1ms : milliseconds(patience);
        BOOST_TEST(static_cast<bool>(fslock::try_acquire(d / name, limit, minutes())) == (age != 0s));
        BOOST_TEST(std::filesystem::exists(token) == (age == 0s));
    }
}

BOOST_AUTO_TEST_SUITE_END()
