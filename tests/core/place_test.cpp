// Lock paths: what is taken apart, refused, and put beside a lock.
#include "core/place.hpp"

#include <boost/test/unit_test.hpp>
#include <cerrno>
#include <initializer_list>
#include <memory>
#include <set>
#include <string>

#include "fslock/error.hpp"
#include "support/directory.hpp"

namespace {

using namespace std::string_literals;
using fslock::core::is_reserved;
using fslock::core::lock_name;
using fslock::core::split;

constexpr std::size_t longest_name = 208;

std::error_code os_error(int code) {
    return {code, std::system_category()};
}

fslock::core::place place_of(const std::string& path) {
    fslock::core::place p;
    BOOST_REQUIRE(!split(path, p.lock));
    p.where = std::make_shared<fslock::core::directory>(std::string(p.lock.directory()),
                                                        fslock::os::directory_facts{});
    return p;
}

BOOST_AUTO_TEST_SUITE(place_of_a_lock)

BOOST_AUTO_TEST_CASE(a_path_is_taken_apart_at_its_last_slash) {
    struct {
        std::string path;
        std::string directory;
        std::string name;
    } const rows[] = {
        {"/srv/app/index.lock", "/srv/app", "index.lock"},
        {"/x", "/", "x"},
        {"/a/x", "/a", "x"},
        {"/a/../b/./x", "/a/../b/.", "x"},
        {"/a/.hidden", "/a", ".hidden"},
        {"/a/...", "/a", "..."},
        {"/a/.x", "/a", ".x"},
        {"/a/with space\nand newline", "/a", "with space\nand newline"},
        {"/a/\xff\xfe\x80", "/a", "\xff\xfe\x80"},
        {"/\xc3/b\xc3", "/\xc3", "b\xc3"},
        {"/a.reclaim/x.reclaim", "/a.reclaim", "x.reclaim"},
        {"/.x.reclaim/x", "/.x.reclaim", "x"},  // only the last component is a name of a lock
    };
    for (const auto& r : rows) {
        BOOST_TEST_CONTEXT(r.path) {
            lock_name n;
            BOOST_TEST(!split(r.path, n));
            BOOST_TEST(n.full == r.path);
            BOOST_TEST(n.directory() == r.directory);
            BOOST_TEST(n.name() == r.name);
        }
    }
}

BOOST_AUTO_TEST_CASE(a_path_that_cannot_be_a_lock_is_refused) {
    struct {
        const char* name;
        std::string path;
        std::error_code error;
    } const rows[] = {
        {"empty", "", os_error(ENOENT)},
        {"NUL inside", "/a/x\0y"s, os_error(EINVAL)},
        {"NUL in the directory", "/a\0b/x"s, os_error(EINVAL)},
        {"NUL at the end", "/a/x\0"s, os_error(EINVAL)},
        {"H01 root", "/", os_error(EISDIR)},
        {"trailing slash", "/a/x/", os_error(EISDIR)},
        {"relative, trailing slash", "x/", os_error(EISDIR)},
        {"dot", ".", os_error(EISDIR)},
        {"dot dot", "..", os_error(EISDIR)},
        {"dot below", "/a/.", os_error(EISDIR)},
        {"dot dot below", "/a/..", os_error(EISDIR)},
        {"H09 a token", "/a/.x.reclaim", fslock::errc::reserved_name},
        {"H09 a token, relative", ".x.reclaim", fslock::errc::reserved_name},
        {"H09 a temp", "/a/.x.tmp.1.2.3", fslock::errc::reserved_name},
    };
    for (const auto& r : rows) {
        lock_name n;
        BOOST_TEST_CONTEXT(r.name) BOOST_TEST(split(r.path, n) == r.error);
    }
}

BOOST_AUTO_TEST_CASE(a_name_leaves_room_for_its_token_and_its_temps) {  // H08
    for (const std::size_t length : {1U, 200U, 207U, 208U, 209U, 246U, 247U, 248U, 255U, 256U, 5'000U}) {
        lock_name n;
        const auto expected = length <= longest_name ? std::error_code() : os_error(ENAMETOOLONG);
        BOOST_TEST_CONTEXT(length) {
            BOOST_TEST(split("/a/" + std::string(length, 'x'), n) == expected);
            BOOST_TEST(split("/" + std::string(1'000, 'd') + "/" + std::string(length, 'x'), n) == expected);
        }
    }
    const auto widest = "." + std::string(longest_name, 'x') + ".tmp.2147483647.9223372036854775807.4294967295";
    BOOST_TEST(widest.size() <= 255U);
    BOOST_TEST(is_reserved(widest));
}

BOOST_AUTO_TEST_CASE(a_relative_path_is_made_absolute_once) {  // H11
    const auto here = std::filesystem::current_path().native();
    for (const auto* path : {"x", "a/x", "./x", "../x"}) {
        lock_name n;
        BOOST_TEST(!split(path, n));
        BOOST_TEST(n.full == here + "/" + path);
        BOOST_TEST(n.name() == "x");
    }
}

BOOST_AUTO_TEST_CASE(without_a_current_directory_a_relative_path_is_an_error) {
    struct home {
        std::filesystem::path path = std::filesystem::current_path();
        ~home() { std::filesystem::current_path(path); }
    } const back;
    {
        const support::directory gone;
        std::filesystem::current_path(gone.path());
    }
    lock_name n;
    BOOST_TEST((split("x", n) == std::errc::no_such_file_or_directory));
    BOOST_TEST(!split("/a/x", n));
}

BOOST_AUTO_TEST_SUITE_END()
BOOST_AUTO_TEST_SUITE(names_beside_a_lock)

void check_names(std::initializer_list<const char*> names, bool reserved) {
    for (const auto* name : names) {
        BOOST_TEST_CONTEXT(name) BOOST_TEST(is_reserved(name) == reserved);
    }
}

BOOST_AUTO_TEST_CASE(a_token_is_reserved_in_any_case) {  // H09, H13
    check_names({".x.reclaim", ".x.RECLAIM", ".X.Reclaim", ".x.reclaiM"}, true);
    check_names({"...reclaim", "..x.reclaim", ".x y.reclaim", ".\xff.reclaim", ".x.reclaim.reclaim"}, true);
}

BOOST_AUTO_TEST_CASE(a_temp_is_reserved_in_any_case) {  // H09, H13
    check_names({".x.tmp.1.2.3", ".x.TMP.1.2.3", ".x.Tmp.1.2.3", ".x.tMp.1.2.3"}, true);
    check_names({".x.tmp.0.0.0", ".x.tmp.00.1.2", ".x.tmp.1.tmp.1.2.3", "...tmp.1.2.3"}, true);
    check_names({".x.tmp.2147483647.18446744073709551615.4294967295", ".\xff.tmp.1.2.3"}, true);
}

BOOST_AUTO_TEST_CASE(other_names_are_free) {  // H09
    check_names({"", ".", "..", "x", ".x", ".1.2.3", "reclaim", ".reclaim", "..reclaim"}, false);
    check_names({"x.reclaim", ".xreclaim", ".x.reclai", ".x.reclaim2", ".x.reclaim ", ".x.reclaim.bak"}, false);
    check_names({"x.tmp.1.2.3", ".tmp.1.2.3", "..tmp.1.2.3", ".xtmp.1.2.3", ".x.tmpx.1.2.3"}, false);
    check_names({".x.temp.1.2.3", ".x.tmp", ".x.tmp.1", ".x.tmp.1.2", ".x.tmp.1.2.3.4"}, false);
    check_names({".x.tmp.1.2.", ".x.tmp..2.3", ".x.tmp.1..3", ".x.tmp.1.2.3.", ".x.tmp.1.2.3 "}, false);
    check_names({".x.tmp.1.2.a", ".x.tmp.a.2.3", ".x.tmp.1.-2.3", ".x.tmp.1.+2.3"}, false);
}

BOOST_AUTO_TEST_CASE(the_token_stands_beside_its_lock) {
    BOOST_TEST(place_of("/a/b/x").token_path() == "/a/b/.x.reclaim");
    BOOST_TEST(place_of("/x").token_path() == "/.x.reclaim");
    BOOST_TEST(place_of("/a/.x").token_path() == "/a/..x.reclaim");
    BOOST_TEST(place_of("/a/\xff\n").token_path() == "/a/.\xff\n.reclaim");
    BOOST_TEST(place_of("/a/" + std::string(longest_name, 'x')).token_path() ==
               "/a/." + std::string(longest_name, 'x') + ".reclaim");
}

BOOST_AUTO_TEST_CASE(a_temp_begins_with_the_name_of_its_lock) {
    BOOST_TEST(place_of("/a/b/x").temp_prefix() == ".x.tmp.");
    BOOST_TEST(place_of("/.x").temp_prefix() == "..x.tmp.");
    BOOST_TEST(is_reserved(place_of("/a/\xff").temp_prefix() + "1.2.3"));
}

BOOST_AUTO_TEST_CASE(no_two_locks_share_a_token_and_no_lock_is_one) {  // H08, H09
    std::set<std::string> tokens;
    std::size_t locks = 0;
    std::set<std::string> names = {
        "x",           ".x", "..x", "X",  "x.reclaim", "x.reclaim.reclaim", "reclaim", ".reclaim",
        "x.tmp.1.2.3", "x ", " x",  "x.", "\xc3\xbc",  "u\xcc\x88",         "\xff",    "\xfe"};
    for (std::size_t length = 1; length <= longest_name; ++length) {
        names.insert(std::string(length, 'y'));
        names.insert(std::string(length - 1, 'y') + 'z');  // differs only at its end
        names.insert('z' + std::string(length - 1, 'y'));
    }
    for (const auto& name : names) {
        const auto token = place_of("/a/" + name).token_path();
        tokens.insert(token);
        ++locks;
        lock_name n;
        BOOST_TEST(split(token, n) == fslock::errc::reserved_name);
        BOOST_TEST(token.size() - 3 <= 255U);
    }
    BOOST_TEST(tokens.size() == locks);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
