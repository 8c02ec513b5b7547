// The line of a record, to be changed and damaged.
#pragma once

#include <boost/test/unit_test.hpp>
#include <ostream>
#include <span>
#include <string>
#include <string_view>

#include "core/record.hpp"

namespace fslock::core {

inline std::ostream& boost_test_print_type(std::ostream& out, content c) {
    static constexpr const char* words[] = {"record", "malformed", "foreign"};
    return out << words[static_cast<int>(c)];
}

}  // namespace fslock::core

namespace support {

/// As the first implementation writes it: seven fields.
inline const std::string seed_line =
    R"({"pid":4711,"hostname":"alpha","process_start_time":123456,"boot_id":"0b1c2d3e",)"
    R"("created_at_ms":1700000000123,"heartbeat_at_ms":1700000005456,"writer_epoch":"4711-17"})"
    "\n";

/// `seed_line` without its last brace.
inline std::string open_end() {
    return seed_line.substr(0, seed_line.size() - 2);
}

/// `seed_line` with more fields at its end.
inline std::string with(const std::string& more) {
    return open_end() + ',' + more + "}\n";
}

/// `seed_line` with `to` in the place of `from`.
inline std::string replaced(std::string_view from, std::string_view to) {
    auto text = seed_line;
    const auto at = text.find(from);
    BOOST_REQUIRE(at != std::string::npos);
    return text.replace(at, from.size(), to);
}

struct text_row {
    const char* name;
    std::string text;
    fslock::core::content kind;
};

inline void check_texts(std::span<const text_row> rows) {
    for (const auto& r : rows) {
        BOOST_TEST_CONTEXT(r.name) {
            const auto p = fslock::core::parse(r.text);
            BOOST_TEST(p.kind == r.kind);
            if (p.kind != fslock::core::content::record) BOOST_TEST((p.value == fslock::core::record{}));
        }
    }
}

}  // namespace support
