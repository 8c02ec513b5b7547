// The text of a record: what is written, and that it is read back.
#include "core/record.hpp"

#include <boost/test/unit_test.hpp>
#include <limits>
#include <string>

#include "core/utf8.hpp"

namespace {

using namespace std::string_literals;
using fslock::core::content;
using fslock::core::epoch_stamp;
using fslock::core::format;
using fslock::core::parse;
using fslock::core::same_acquisition;
using fslock::os::witness_kind;
using record = fslock::core::record;

constexpr auto largest = std::numeric_limits<std::uint64_t>::max();

record full() {
    record r;
    r.pid = 4711;
    r.hostname = "alpha";
    r.process_start_time = 123'456;
    r.boot_id = "0b1c2d3e-0000-4000-8000-000000000001";
    r.created_at_ms = 1'700'000'000'123;
    r.heartbeat_at_ms = 1'700'000'005'456;
    r.writer_epoch = "4711-1700000000123456789";
    r.pid_ns = 4'026'531'836;
    r.guard = witness_kind::ofd;
    r.heartbeat_ms = 5'000;
    r.label = "nightly index";
    return r;
}

/// The least that there is to say.
record bare() {
    record r;
    r.pid = 1;
    r.hostname = "h";
    r.created_at_ms = r.heartbeat_at_ms = 1'700'000'000'000;
    r.writer_epoch = "1-2";
    return r;
}

void check_round_trip(const record& r) {
    const auto p = parse(format(r));
    BOOST_TEST((p.kind == content::record));
    BOOST_TEST((p.value == r));
}

BOOST_AUTO_TEST_SUITE(record_as_written)

BOOST_AUTO_TEST_CASE(a_record_is_one_line_with_its_fields_in_order) {
    BOOST_TEST(format(full()) ==
               R"({"pid":4711,"hostname":"alpha","process_start_time":123456,)"
               R"("boot_id":"0b1c2d3e-0000-4000-8000-000000000001",)"
               R"("created_at_ms":1700000000123,"heartbeat_at_ms":1700000005456,)"
               R"("writer_epoch":"4711-1700000000123456789","pid_ns":4026531836,"guard":"ofd",)"
               R"("heartbeat_ms":5000,"label":"nightly index"})"
               "\n");
}

BOOST_AUTO_TEST_CASE(what_is_not_known_is_not_written) {
    BOOST_TEST(format(bare()) ==
               R"({"pid":1,"hostname":"h","created_at_ms":1700000000000,"heartbeat_at_ms":1700000000000,)"
               R"("writer_epoch":"1-2"})"
               "\n");
    auto flock = bare();
    flock.guard = witness_kind::flock;
    BOOST_TEST(format(flock).find(R"(,"guard":"flock"})") != std::string::npos);
    auto zeros = bare();  // recorded, and zero
    zeros.process_start_time = zeros.pid_ns = 0;
    BOOST_TEST(format(zeros).find(R"("process_start_time":0,)") != std::string::npos);
    BOOST_TEST(format(zeros).find(R"("pid_ns":0})") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(times_have_thirteen_digits_so_that_a_beat_keeps_the_length) {
    struct {
        std::int64_t time;
        const char* digits;
    } const rows[] = {
        {std::numeric_limits<std::int64_t>::min(), "1000000000000"},
        {-1, "1000000000000"},
        {0, "1000000000000"},  // D04: no clock yet
        {999'999'999'999, "1000000000000"},
        {1'000'000'000'000, "1000000000000"},
        {1'700'000'000'001, "1700000000001"},
        {9'999'999'999'999, "9999999999999"},
        {10'000'000'000'000, "9999999999999"},
        {std::numeric_limits<std::int64_t>::max(), "9999999999999"},
    };
    for (const auto& row : rows) {
        auto r = full();
        r.created_at_ms = r.heartbeat_at_ms = row.time;
        const auto line = format(r);
        const auto expected = R"("created_at_ms":)"s + row.digits + R"(,"heartbeat_at_ms":)" + row.digits + ',';
        BOOST_TEST(line.find(expected) != std::string::npos, line);
        BOOST_TEST(line.size() == format(full()).size());
    }
}

BOOST_AUTO_TEST_CASE(text_is_escaped) {
    struct {
        std::string text;
        std::string written;
    } const rows[] = {
        {R"(say "hi")", R"(say \"hi\")"},
        {R"(C:\x)", R"(C:\\x)"},
        {"a\nb\tc\r", R"(a\u000ab\u0009c\u000d)"},
        {"\x01\x1f\x7f", "\\u0001\\u001f\x7f"},
        {"nul\0end"s, R"(nul\u0000end)"},
        {"a/b <&>", "a/b <&>"},
        {"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x94\x92",
         "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x94\x92"},
    };
    for (const auto& row : rows) {
        auto r = bare();
        r.hostname = r.boot_id = r.writer_epoch = r.label = row.text;
        const auto line = format(r);
        for (const auto* key : {"hostname", "boot_id", "writer_epoch", "label"}) {
            const auto expected = '"' + std::string(key) + "\":\"" + row.written + '"';
            BOOST_TEST(line.find(expected) != std::string::npos, line);
        }
        BOOST_TEST(line.find('\n') == line.size() - 1);
        check_round_trip(r);
    }
}

BOOST_AUTO_TEST_CASE(text_that_is_not_utf8_is_still_readable) {
    for (const auto& bad : {"\xff"s, "\xc3"s, "\xc0\x80"s, "\xed\xa0\x80"s, "\xf5\x80\x80\x80"s, "\x80"s}) {
        auto r = bare();
        r.hostname = "a" + bad + "z";
        r.label = bad;
        const auto line = format(r);
        const std::string marks(bad.size(), '?');
        BOOST_TEST(line.find("\"hostname\":\"a" + marks + "z\"") != std::string::npos, line);
        BOOST_TEST(fslock::core::is_utf8(line));
        const auto p = parse(line);
        BOOST_TEST((p.kind == content::record));
        BOOST_TEST(p.value.label == marks);
    }
}

BOOST_AUTO_TEST_CASE(what_was_written_is_read_back) {
    check_round_trip(full());
    check_round_trip(bare());
    auto r = full();
    r.pid = std::numeric_limits<std::int32_t>::max();
    r.process_start_time = r.pid_ns = largest;
    r.heartbeat_ms = std::numeric_limits<std::int64_t>::max();
    r.guard = witness_kind::flock;
    check_round_trip(r);
    r.process_start_time = r.pid_ns = 0;
    r.heartbeat_ms = 1;
    r.guard = witness_kind::none;
    r.hostname = "";
    r.writer_epoch.clear();
    check_round_trip(r);
}

BOOST_AUTO_TEST_CASE(the_longest_record_fits_the_limit_of_its_readers) {
    auto r = full();
    r.hostname = std::string(64, '\x01') + "/18446744073709551615";
    r.label = std::string(256, '\x01');
    r.process_start_time = r.pid_ns = largest;
    r.heartbeat_ms = std::numeric_limits<std::int64_t>::max();
    BOOST_TEST(format(r).size() <= fslock::core::record_limit);
    check_round_trip(r);
}

BOOST_AUTO_TEST_CASE(an_epoch_ends_with_its_nanoseconds) {
    struct {
        const char* epoch;
        std::int64_t stamp;
    } const rows[] = {
        {"4711-1700000000123456789", 1'700'000'000'123'456'789},
        {"1-1", 1},
        {"1-9223372036854775807", std::numeric_limits<std::int64_t>::max()},
        {"1-9223372036854775808", 0},
        {"1-0", 0},
        {"1-", 0},
        {"", 0},
        {"17", 0},
        {"1-+5", 0},
        {"1- 5", 0},
        {"1-5x", 0},
        {"1-0x5", 0},
        {"no epoch", 0},
    };
    for (const auto& row : rows) BOOST_TEST_CONTEXT(row.epoch) BOOST_TEST(epoch_stamp(row.epoch) == row.stamp);
}

BOOST_AUTO_TEST_CASE(acquisitions_are_told_apart_by_boot_or_else_by_host) {
    auto other = full();
    BOOST_TEST(same_acquisition(full(), other));
    other.hostname = "beta";  // renamed while it runs
    BOOST_TEST(same_acquisition(full(), other));
    other.boot_id = {};
    BOOST_TEST(!same_acquisition(full(), other));
    auto elsewhere = bare();
    BOOST_TEST(same_acquisition(bare(), elsewhere));
    elsewhere.hostname = "g";
    BOOST_TEST(!same_acquisition(bare(), elsewhere));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
