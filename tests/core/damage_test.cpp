// What is a damaged record, and what is somebody else's file.
#include <boost/test/unit_test.hpp>
#include <random>
#include <string>

#include "record_text.hpp"

namespace {

using namespace std::string_literals;
using namespace support;
using fslock::core::content;
using fslock::core::parse;
using fslock::core::record_limit;

BOOST_AUTO_TEST_SUITE(parse_what_is_no_record)

BOOST_AUTO_TEST_CASE(a_record_cut_off_anywhere_is_malformed) {  // C01, C03
    fslock::core::record r;
    r.pid = 4711;
    r.hostname = "alpha \"quoted\" \xc3\xbc";
    r.process_start_time = r.pid_ns = 123'456;
    r.boot_id = "0b1c2d3e";
    r.writer_epoch = "4711-17";
    r.guard = fslock::os::witness_kind::ofd;
    r.heartbeat_ms = 5'000;
    r.label = "a label";
    for (const auto& line : {fslock::core::format(r), seed_line}) {
        for (std::size_t n = 0; n + 1 < line.size(); ++n)
            BOOST_TEST_CONTEXT(n << " bytes") BOOST_TEST(parse(line.substr(0, n)).kind == content::malformed);
        BOOST_TEST(parse(line.substr(0, line.size() - 1)).kind == content::record);  // all but the newline
    }
}

BOOST_AUTO_TEST_CASE(a_record_torn_by_zeros_is_malformed) {  // G15
    for (std::size_t n = 0; n + 2 < seed_line.size(); n += n < 8 ? 8 : 1) {
        auto torn = seed_line;
        torn.replace(n, std::string::npos, std::string(torn.size() - n, '\0'));
        BOOST_TEST_CONTEXT(n << " bytes") BOOST_TEST(parse(torn).kind == content::malformed);
    }
    for (const std::size_t zeros : {1U, 250U, 400U, 4096U})
        BOOST_TEST(parse(std::string(zeros, '\0')).kind == content::malformed);
}

BOOST_AUTO_TEST_CASE(damage_behind_the_first_key_is_malformed) {  // C03
    const text_row rows[] = {
        {"empty", "", content::malformed},
        {"letters after", seed_line + "x", content::malformed},
        {"a second record", seed_line + seed_line, content::malformed},
        {"a brace after", seed_line + "}", content::malformed},
        {"a comma after", seed_line + ",", content::malformed},
        {"a comma at the end", open_end() + ",}", content::malformed},
        {"no comma", open_end() + R"( "z":1})", content::malformed},
        {"no colon", with(R"("z" 1)"), content::malformed},
        {"a key that is no text", with("1:1"), content::malformed},
        {"a comment", open_end() + "/*x*/}", content::malformed},
        {"a word cut off", with(R"("z":tru)"), content::malformed},
        {"no number", with(R"("z":1.2.3)"), content::malformed},
        {"nan", with(R"("z":nan)"), content::malformed},
        {"mismatched", with(R"("z":[1,2})"), content::malformed},
        {"bytes that are not UTF-8", with("\"z\":\"\xff\""), content::malformed},
        {"overlong UTF-8", with("\"z\":\"\xc0\x80\""), content::malformed},
        {"surrogate bytes", with("\"z\":\"\xed\xa0\x80\""), content::malformed},
        {"bad key", with("\"\xc3\x28\":1"), content::malformed},
        {"raw newline", with("\"z\":\"a\nb\""), content::malformed},
        {"raw NUL", with("\"z\":\"a\0b\""s), content::malformed},
        {"a garbled pid", "{\"pid\":\x01\x02\x03", content::malformed},
    };
    check_texts(rows);
}

BOOST_AUTO_TEST_CASE(what_does_not_begin_like_a_record_is_foreign) {  // C03, C06, C08
    std::string utf16;
    for (const char c : seed_line) utf16 += c, utf16 += '\0';
    const text_row rows[] = {
        {"UTF-16", utf16, content::foreign},
        {"UTF-16 with its mark", "\xff\xfe" + utf16, content::foreign},
        {"null", "null", content::foreign},
        {"array", "[]", content::foreign},
        {"array of a record", "[" + seed_line + "]", content::foreign},
        {"number", "4711\n", content::foreign},
        {"text", "\"abc\"", content::foreign},
        {"empty object", "{}", content::foreign},
        {"another object", R"({"a":1})", content::foreign},
        {"single quotes", "{'pid':1}", content::foreign},
        {"space only", "  \n", content::foreign},
        {"a log", "2024-01-01 started\n", content::foreign},
        {"NUL, then text", "\0\0x"s, content::foreign},
        {"a damaged record with space before", " " + seed_line.substr(0, 40), content::foreign},
    };
    check_texts(rows);
}

BOOST_AUTO_TEST_CASE(deep_nesting_ends_nobodys_stack) {  // C14
    const auto deep = [](std::size_t n) { return with("\"x\":" + std::string(n, '[') + std::string(n, ']')); };
    const text_row rows[] = {
        {"100000 open", std::string(100'000, '['), content::foreign},
        {"3000 open", std::string(3'000, '['), content::foreign},
        {"3000 open objects", R"({"pid":1,"x":)" + std::string(3'000, '{'), content::malformed},
        {"3000 in a pid", "{\"pid\":" + std::string(3'000, '['), content::malformed},
        {"2 in a record", deep(2), content::record},
        {"100 in a record", deep(100), content::malformed},
        {"1900 in a record", deep(1'900), content::malformed},
        {"after all that, a record", seed_line, content::record},
    };
    check_texts(rows);
}

BOOST_AUTO_TEST_CASE(nothing_beyond_the_limit_is_looked_at) {
    const auto filled = [](std::size_t size) { return seed_line + std::string(size - seed_line.size(), ' '); };
    const text_row rows[] = {
        {"at the limit", filled(record_limit), content::record},
        {"beyond it", filled(record_limit + 1), content::foreign},
        {"64 KiB", filled(65'536), content::foreign},
        {"zeros beyond it", std::string(record_limit + 1, '\0'), content::foreign},
        {"a small one after a large one", seed_line, content::record},
    };
    check_texts(rows);
}

BOOST_AUTO_TEST_CASE(random_bytes_are_foreign) {  // C03
    std::minstd_rand random(20'240'101);
    for (int round = 0; round < 200; ++round) {
        std::string noise(4'096, '\0');
        for (auto& c : noise) c = static_cast<char>(random() >> 8);
        noise[0] = static_cast<char>(noise[0] == '{' ? '#' : noise[0]);
        BOOST_TEST(parse(noise).kind == content::foreign);
    }
}

BOOST_AUTO_TEST_CASE(a_record_with_one_byte_changed_never_throws) {
    std::minstd_rand random(7);
    for (std::size_t at = 0; at < seed_line.size(); ++at) {
        for (int round = 0; round < 16; ++round) {
            auto text = seed_line;
            text[at] = static_cast<char>(random() >> 8);
            const auto p = parse(text);
            if (at >= 7) BOOST_TEST((p.kind != content::foreign));
            if (p.kind == content::record) BOOST_TEST(p.value.pid > 0);
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
