// Which texts are a record, and what it says.
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>

#include "record_text.hpp"

namespace {

using namespace std::string_literals;
using namespace support;
using fslock::core::content;
using fslock::core::parse;
using fslock::os::witness_kind;
using record = fslock::core::record;

BOOST_AUTO_TEST_SUITE(parse_a_record)

BOOST_AUTO_TEST_CASE(the_seven_fields_of_the_first_version_are_enough) {
    const auto p = parse(seed_line);
    BOOST_TEST(p.kind == content::record);
    record expected;
    expected.pid = 4711;
    expected.hostname = "alpha";
    expected.process_start_time = 123'456;
    expected.boot_id = "0b1c2d3e";
    expected.created_at_ms = 1'700'000'000'123;
    expected.heartbeat_at_ms = 1'700'000'005'456;
    expected.writer_epoch = "4711-17";
    BOOST_TEST((p.value == expected));
}

BOOST_AUTO_TEST_CASE(a_field_that_an_older_writer_does_not_know_may_be_missing) {  // C11
    const text_row rows[] = {
        {"pid", replaced(R"("pid":4711,)", ""), content::foreign},
        {"hostname", replaced(R"("hostname":"alpha",)", ""), content::record},
        {"process_start_time", replaced(R"("process_start_time":123456,)", ""), content::record},
        {"boot_id", replaced(R"("boot_id":"0b1c2d3e",)", ""), content::record},
        {"created_at_ms", replaced(R"("created_at_ms":1700000000123,)", ""), content::record},
        {"heartbeat_at_ms", replaced(R"("heartbeat_at_ms":1700000005456,)", ""), content::record},
        {"writer_epoch", replaced(R"(,"writer_epoch":"4711-17")", ""), content::record},
        {"all but the pid", R"({"pid":4711})", content::record},
    };
    check_texts(rows);
    BOOST_TEST(!parse(rows[2].text).value.process_start_time.has_value());
    BOOST_TEST(parse(rows[3].text).value.boot_id.empty());
    BOOST_TEST(parse(rows[6].text).value.writer_epoch.empty());
}

BOOST_AUTO_TEST_CASE(the_fields_may_come_in_any_order_if_none_is_missing) {
    const text_row rows[] = {
        {"hostname first", R"({"hostname":"h","pid":7,"created_at_ms":1,"heartbeat_at_ms":2})",
         content::record},
        {"spread out", "{ \"pid\": 7,\n \"hostname\": \"h\", \"created_at_ms\": 1, \"heartbeat_at_ms\": 2 }",
         content::record},
        {"no hostname", R"({"created_at_ms":1,"pid":7,"heartbeat_at_ms":2})", content::foreign},
        {"no heartbeat", R"({"hostname":"h","pid":7,"created_at_ms":1})", content::foreign},
        {"no created_at_ms", R"({"hostname":"h","pid":7,"heartbeat_at_ms":1})", content::foreign},
        {"a data file with a pid", R"({"name":"index","pid":7})", content::foreign},
    };
    check_texts(rows);
    BOOST_TEST(parse(rows[0].text).value.pid == 7);
}

BOOST_AUTO_TEST_CASE(what_a_newer_writer_adds_is_ignored) {  // C10
    const text_row rows[] = {
        {"a number", with(R"("version":99)"), content::record},
        {"an object", with(R"("extra":{"a":[1,{"b":null}],"c":1.5e3})"), content::record},
        {"twice the same", with(R"("x":1,"x":2)"), content::record},
        {"a known key inside", with(R"("extra":{"pid":1,"guard":7})"), content::record},
        {"another case", with(R"("PID":"x")"), content::record},
        {"a lone surrogate is damage", with(R"("x":"\ud800")"), content::malformed},
    };
    check_texts(rows);
    BOOST_TEST(parse(rows[3].text).value.pid == 4711);
    BOOST_TEST((parse(with(R"("guard":"ofd")")).value.guard == witness_kind::ofd));
    BOOST_TEST((parse(with(R"("guard":"flock")")).value.guard == witness_kind::flock));
    BOOST_TEST((parse(with(R"("guard":"lease")")).value.guard == witness_kind::none));
    BOOST_TEST((parse(with(R"("guard":"")")).value.guard == witness_kind::none));
}

BOOST_AUTO_TEST_CASE(space_around_a_record_is_allowed) {  // C15
    const text_row rows[] = {
        {"no newline", open_end() + '}', content::record},
        {"more newlines", seed_line + "\n\r\n \t", content::record},
        {"space before", "\n " + seed_line, content::record},
        {"NUL bytes after", seed_line + std::string(20, '\0'), content::malformed},
        {"form feed after", seed_line + '\f', content::malformed},
    };
    check_texts(rows);
    // Whether the mark of UTF-8 is skipped is left to the JSON library; it is no damage of ours.
    const auto marked = parse("\xef\xbb\xbf" + seed_line);
    BOOST_TEST((marked.kind == content::foreign || marked.value == parse(seed_line).value));
    BOOST_TEST(parse("\xef\xbb\xbf").kind == content::foreign);
}

void check_bad_pids(std::initializer_list<const char*> values) {
    for (const auto* bad : values) {
        BOOST_TEST_CONTEXT(bad) BOOST_TEST(parse(replaced("4711", bad)).kind == content::malformed);
    }
}

BOOST_AUTO_TEST_CASE(a_pid_is_checked_before_it_is_narrowed) {  // C07, C08
    for (const auto* good : {"1", "2147483647", "4194305"})
        BOOST_TEST(parse(replaced("4711", good)).value.pid == std::stoi(good));
    check_bad_pids({"0", "-0", "-1", "-2147483648", "2147483648", "4294967296", "4294967297"});
    check_bad_pids({"9223372036854775808", "18446744073709551615", "18446744073709551617"});
    check_bad_pids({"123456789012345678901234567890", "1e3", "1.0", "12.5", "1e400", "01", "+1", "0x10"});
    check_bad_pids({"\"123\"", "\"123abc\"", "123abc", "true", "null", "[]", "[1]", "{}", ""});
}

BOOST_AUTO_TEST_CASE(every_number_has_its_range) {
    const auto key = [](const char* name, const char* value) {
        return '"' + std::string(name) + "\":" + value;
    };
    struct {
        const char* name;
        const char* value;
        content kind;
    } const rows[] = {
        {"pid_ns", "18446744073709551615", content::record},
        {"pid_ns", "18446744073709551616", content::malformed},
        {"pid_ns", "0", content::record},
        {"pid_ns", "-1", content::malformed},
        {"pid_ns", "1.5", content::malformed},
        {"pid_ns", "null", content::malformed},
        {"heartbeat_ms", "1", content::record},
        {"heartbeat_ms", "0", content::malformed},
        {"heartbeat_ms", "-5000", content::malformed},
        {"heartbeat_ms", "5e3", content::malformed},
        {"heartbeat_ms", "9223372036854775807", content::record},
        {"heartbeat_ms", "9223372036854775808", content::malformed},
    };
    for (const auto& r : rows) {
        BOOST_TEST_CONTEXT(r.name << ' ' << r.value) {
            BOOST_TEST(parse(with(key(r.name, r.value))).kind == r.kind);
        }
    }
    for (const auto* number : {"123456", "1700000000123", "1700000005456"})
        for (const auto* bad :
             {"-1", "1e3", "1.5", "\"1\"", "18446744073709551616", "null", "true", "[]", "{}"})
            BOOST_TEST_CONTEXT(number << " is " << bad) {
                BOOST_TEST(parse(replaced(number, bad)).kind == content::malformed);
            }
    BOOST_TEST(parse(replaced("1700000000123", "9223372036854775808")).kind == content::malformed);
    BOOST_TEST((parse(replaced("123456", "18446744073709551615")).value.process_start_time ==
                std::numeric_limits<std::uint64_t>::max()));
    BOOST_TEST(parse(replaced("1700000005456", "0")).kind == content::record);           // D04
    BOOST_TEST(parse(replaced("1700000005456", "1700000005")).kind == content::record);  // D12
}

BOOST_AUTO_TEST_CASE(texts_have_to_be_texts) {
    for (const auto* text : {R"("alpha")", R"("0b1c2d3e")", R"("4711-17")"})
        for (const auto* bad :
             {"1", "null", "true", "[]", "{}", "\"\xff\"", "\"a\nb\"", R"("\ud800")", R"("\q")", "'a'"})
            BOOST_TEST_CONTEXT(text << " is " << bad) {
                BOOST_TEST(parse(replaced(text, bad)).kind == content::malformed);
            }
    static constexpr const char* bad_fields[] = {R"("guard":1)", R"("guard":null)", R"("label":1)",
                                                 R"("label":["x"])"};
    for (const auto* bad : bad_fields) {
        BOOST_TEST_CONTEXT(bad) BOOST_TEST(parse(with(bad)).kind == content::malformed);
    }
    BOOST_TEST(parse(replaced("alpha", "\\u0061\\n\\u0000\\ud83d\\udd12")).value.hostname.view() ==
               "a\n\0\xf0\x9f\x94\x92"s);
}

BOOST_AUTO_TEST_CASE(a_known_key_comes_once) {
    const char* const known[] = {R"("pid":4711)",
                                 R"("hostname":"alpha")",
                                 R"("process_start_time":123456)",
                                 R"("boot_id":"0b1c2d3e")",
                                 R"("created_at_ms":1700000000123)",
                                 R"("heartbeat_at_ms":1700000005456)",
                                 R"("writer_epoch":"4711-17")"};
    for (const auto* again : known) {
        BOOST_TEST_CONTEXT(again) BOOST_TEST(parse(with(again)).kind == content::malformed);
    }
    BOOST_TEST(parse(with(R"("p\u0069d":4711)")).kind == content::malformed);
    for (const auto* field : {R"("pid_ns":1)", R"("guard":"ofd")", R"("heartbeat_ms":1)", R"("label":"")"}) {
        BOOST_TEST(parse(with(field)).kind == content::record);
        BOOST_TEST(parse(with(field + ","s + field)).kind == content::malformed);
    }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
