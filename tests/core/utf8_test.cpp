// Which bytes are UTF-8: beside the judgement of simdjson, which is not to be called while a program ends.
#include <simdjson.h>

#include <boost/test/unit_test.hpp>
#include <string>

#include "core/utf8.hpp"

namespace {

std::size_t disagreements = 0;

void compare(const char* text, std::size_t size) {
    if (fslock::core::is_utf8({text, size}) != simdjson::validate_utf8(text, size)) ++disagreements;
}

/// The bytes at which a rule of RFC 3629 begins or ends.
constexpr unsigned char edges[] = {0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF,
                                   0xE0, 0xE1, 0xEC, 0xED, 0xEE, 0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF};

void compare_all(std::string& text, std::size_t length) {
    if (length == 0) {
        compare(text.data(), text.size());
        return;
    }
    for (const auto edge : edges) {
        text.push_back(static_cast<char>(edge));
        compare_all(text, length - 1);
        text.pop_back();
    }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(utf8)

BOOST_AUTO_TEST_CASE(every_text_of_two_bytes_is_judged_as_by_simdjson) {
    disagreements = 0;
    for (int n = 0; n < 1 << 16; ++n) {
        const char text[] = {static_cast<char>(n >> 8), static_cast<char>(n & 0xFF)};
        compare(text, 2);
        compare(text + 1, 1);
    }
    BOOST_TEST(disagreements == 0U);
}

BOOST_AUTO_TEST_CASE(every_text_of_up_to_four_bytes_at_the_edges_is_judged_as_by_simdjson) {
    disagreements = 0;
    std::string text;
    for (const std::size_t length : {0U, 3U, 4U}) compare_all(text, length);
    BOOST_TEST(disagreements == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
