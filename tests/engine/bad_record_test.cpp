// Regular files at the lock path that are no sound record: somebody's data is refused and stays as it is; a
// damaged record is waited for, and removed when nobody completes it.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <csignal>
#include <random>

#include "asking.hpp"
#include "crafted.hpp"

namespace {

using namespace support;
using namespace std::string_literals;
using fslock::errc;

void check_refused_until_removed(const directory& d) {
    BOOST_TEST(refused(d.path(), d / "x", errc::not_a_lock_file, minutes()) == "");
    std::filesystem::remove(d / "x");
    BOOST_TEST(obtainable(d / "x", minutes()) == "");
}

void check_data_survives(const std::string& text) {
    const directory d;
    write_file(d / "x", text);
    age_file(d / "x", 24h);  // however old it is
    BOOST_TEST(refused(d.path(), d / "x", errc::not_a_lock_file, minutes()) == "");
    BOOST_TEST((read_file(d / "x") == text));
    check_refused_until_removed(d);
}

/// A text that begins like a record. Nobody is told that it is an error, and nobody gets the lock before its
/// grace is over.
void check_waited_for(const std::string& text) {
    const directory d;
    const auto young = d / fresh_name();
    write_file(young, text);
    const auto before = picture_of(d.path());
    for (const auto limit : {0ms, 30ms}) {
        fslock::error_code ec;
        const auto lock = fslock::try_acquire(young, limit, minutes(), ec);
        BOOST_TEST(!ec);
        BOOST_TEST(!lock);
    }
    BOOST_TEST(picture_of(d.path()) == before, boost::test_tools::per_element());
    for (const auto& w : ways()) {
        BOOST_TEST_CONTEXT(w.name) {
            const auto old = d / fresh_name();
            write_file(old, text);
            age_file(old, 11min);
            auto a = w.ask(old, minutes(), patience);
            BOOST_TEST(!a.error);
            BOOST_TEST(static_cast<bool>(a.lock));
            a.lock = {};
            BOOST_TEST(picture_of(d.path()) == before, boost::test_tools::per_element());
        }
    }
}

std::string random_bytes(std::size_t size) {
    std::mt19937 source(20240229);
    std::string bytes(size, '\0');
    for (auto& b : bytes) b = static_cast<char>(source());
    return bytes;
}

std::string lines_of_a_log() {
    std::string text;
    while (text.size() < 8192) text += "2024-02-29 12:00:00 INFO request served in 12 ms\n";
    return text;
}

std::string utf16(const std::string& text) {
    std::string wide = "\xff\xfe";
    for (const char c : text) wide += std::string({c, '\0'});
    return wide;
}

struct text_row {
    const char* name;
    std::string text;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(bad_records)

BOOST_AUTO_TEST_CASE(a_data_file_stays_byte_for_byte_what_it_is) {  // C06, C03
    const text_row rows[] = {
        {"configuration", "{\n  \"name\": \"app\",\n  \"pid\": 12\n}\n"},
        {"an object without our keys", R"({"version":99,"extra":{}})"},
        {"a pid file", "4711\n"},
        {"a log of 8 KiB", lines_of_a_log()},
        {"a small text", "not valid json"},
        {"one space", " "},
        {"an array of records", '[' + seed_record(dead_pid).line() + ']'},
        {"random bytes", random_bytes(4096)},
        {"more random bytes", random_bytes(64 * 1024)},
        {"a record in UTF-16", utf16(seed_record(dead_pid).line())},
        {"a record behind a byte order mark", "\xef\xbb\xbf" + seed_record(dead_pid).line()},
        {"a record and more than a record may have", seed_record(dead_pid).line() + std::string(5000, ' ')},
        {"zeros and a one", std::string(100, '\0') + '1'},
        {"true", "true"},
    };
    for (const auto& r : rows) BOOST_TEST_CONTEXT(r.name) check_data_survives(r.text);
}

BOOST_AUTO_TEST_CASE(deep_nesting_is_data_and_breaks_no_reader) {  // C14
    for (const std::size_t depth : {3'000U, 100'000U}) {
        check_data_survives(std::string(depth, '['));
        std::string objects;
        for (std::size_t i = 0; i < depth; ++i) objects += R"({"a":)";
        check_data_survives(objects);
    }
}

BOOST_AUTO_TEST_CASE(a_file_of_eight_gibibytes_is_not_read) {
    const directory d;
    const int fd = ::open((d / "x").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    BOOST_REQUIRE(::ftruncate(fd, off_t{8} << 30) == 0);
    (void)::close(fd);
    age_file(d / "x", 24h);
    check_refused_until_removed(d);
}

BOOST_AUTO_TEST_CASE(a_second_name_of_somebodys_file_is_no_damaged_record) {  // C06
    for (const auto* const text : {"", R"({"pid":)"}) {
        const directory d;
        write_file(d / "config", text);
        std::filesystem::create_hard_link(d / "config", d / "x");
        age_file(d / "x", 24h);
        check_refused_until_removed(d);
        BOOST_TEST(read_file(d / "config") == text);
    }
}

BOOST_AUTO_TEST_CASE(
    a_damaged_record_is_waited_for_and_removed_when_nobody_completes_it) {  // C01, C02, C03, C07, C08
    const auto record = seed_record(dead_pid);
    const text_row rows[] = {
        {"empty", ""},
        {"zeros", std::string(400, '\0')},
        {"its first byte", "{"},
        {"cut off", record.line().substr(0, 17)},
        {"without its end", record.line().substr(0, record.line().size() - 2)},
        {"with junk behind it", record.line() + "junk"},
        {"nested", R"({"pid":)" + std::string(3'000, '[')},
        {"nested in an unknown field", crafted_record(record).set("x", std::string(2'000, '[')).line()},
        {"a key twice", record.line().substr(0, record.line().size() - 2) + R"(,"pid":1})"},
        {"pid 0", crafted_record(record).set("pid", "0").line()},
        {"pid -1", crafted_record(record).set("pid", "-1").line()},
        {"pid -2147483648", crafted_record(record).set("pid", "-2147483648").line()},
        {"pid 2^31", crafted_record(record).set("pid", "2147483648").line()},
        {"pid 2^32 + 1", crafted_record(record).set("pid", "4294967297").line()},
        {"pid 2^64", crafted_record(record).set("pid", "18446744073709551616").line()},
        {"pid 1e3", crafted_record(record).set("pid", "1e3").line()},
        {"pid 12.5", crafted_record(record).set("pid", "12.5").line()},
        {"pid 1e400", crafted_record(record).set("pid", "1e400").line()},
        {"pid as text", crafted_record(record).set("pid", "\"123\"").line()},
        {"pid true", crafted_record(record).set("pid", "true").line()},
        {"pid null", crafted_record(record).set("pid", "null").line()},
        {"pid []", crafted_record(record).set("pid", "[]").line()},
        {"hostname 1", crafted_record(record).set("hostname", "1").line()},
        {"heartbeat as text", crafted_record(record).set("heartbeat_at_ms", "\"1\"").line()},
        {"heartbeat -1", crafted_record(record).set("heartbeat_at_ms", "-1").line()},
        {"heartbeat 1e30", crafted_record(record).set("heartbeat_at_ms", "1e30").line()},
        {"start time -1", crafted_record(record).set("process_start_time", "-1").line()},
        {"start time of 30 digits",
         crafted_record(record).set("process_start_time", std::string(30, '9')).line()},
        {"pace 0", crafted_record(record).set("heartbeat_ms", "0").line()},
    };
    for (const auto& r : rows) BOOST_TEST_CONTEXT(r.name) check_waited_for(r.text);
}

BOOST_AUTO_TEST_CASE(a_writer_that_takes_its_time_is_not_disturbed) {  // C02
    const directory d;
    child owner(live_on);
    write_file(d / "x", "");
    BOOST_TEST(!fslock::try_acquire(d / "x", 50ms, minutes()));
    write_file(d / "x", seed_record(owner.pid()).line());
    const auto before = picture_of(d.path());
    BOOST_TEST(!fslock::try_acquire(d / "x", 50ms, minutes()));
    BOOST_TEST(picture_of(d.path()) == before, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(whitespace_and_unknown_fields_make_no_difference) {  // C10, C15
    child owner(live_on);
    const auto live = seed_record(owner.pid());
    const auto dead = seed_record(dead_pid);
    const auto newer = [](crafted_record r) {
        return r.set("version", "99").set("extra", R"({"a":[1]})").line();
    };
    const auto without_end = [](const crafted_record& r) { return r.line().substr(0, r.line().size() - 1); };
    const std::pair<std::string, std::string> pairs[] = {
        {live.line() + "\r\n ", dead.line() + "\r\n "},
        {without_end(live), without_end(dead)},
        {newer(live), newer(dead)},
    };
    for (const auto& [of_a_living, of_a_dead] : pairs) {
        const directory d;
        const auto held = d / fresh_name();
        write_file(held, of_a_living);
        age_file(held, 11min);
        BOOST_TEST(!fslock::try_acquire(held, 1ms, minutes()));
        BOOST_TEST(read_file(held) == of_a_living);
        const auto left = d / fresh_name();
        write_file(left, of_a_dead);
        age_file(left, 11min);
        BOOST_TEST(obtainable(left, minutes()) == "");
    }
}

#ifdef F_SETLEASE
/// As a file server takes one for its clients. The kernel calls it back when somebody opens the file for writing, whom it
/// refuses meanwhile; here the signal for that ends the holder.
BOOST_AUTO_TEST_CASE(a_lease_on_a_dead_record_is_called_back) {
    const directory d;
    const auto at = d / fresh_name();
    peer_record(dead_pid).text("guard", "ofd").write(at, 1h);
    child holder([&](child::pipe_to_parent& parent) {
        (void)std::signal(SIGIO, SIG_DFL);
        const int fd = ::open(at.c_str(), O_RDONLY | O_CLOEXEC);
        parent.say(::fcntl(fd, F_SETLEASE, F_RDLCK) == 0 ? 'y' : 'n');
        (void)parent.hear();
    });
    if (holder.hear() != 'y') {
        BOOST_TEST_MESSAGE("skipped: there are no leases here");
        return;
    }
    BOOST_TEST(obtainable(at, minutes()) == "");
    BOOST_TEST(WIFSIGNALED(holder.wait()));
}
#endif

BOOST_AUTO_TEST_SUITE_END()
