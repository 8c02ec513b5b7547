#include "utf8.hpp"

#include <cstddef>

namespace fslock::core {
namespace {

/// What may follow a leading byte: how many bytes, and the range of the first of them (RFC 3629, section 4).
struct sequence {
    std::size_t more;
    unsigned char low;
    unsigned char high;
};

constexpr sequence none{0, 0, 0};

constexpr sequence after(unsigned char lead) {
    if (lead >= 0xC2 && lead <= 0xDF) return {1, 0x80, 0xBF};
    if (lead == 0xE0) return {2, 0xA0, 0xBF};
    if (lead == 0xED) return {2, 0x80, 0x9F};
    if (lead >= 0xE1 && lead <= 0xEF) return {2, 0x80, 0xBF};
    if (lead == 0xF0) return {3, 0x90, 0xBF};
    if (lead == 0xF4) return {3, 0x80, 0x8F};
    if (lead >= 0xF1 && lead <= 0xF3) return {3, 0x80, 0xBF};
    return none;
}

}  // namespace

bool is_utf8(std::string_view text) noexcept {
    for (std::size_t at = 0; at < text.size(); ++at) {
        const auto lead = static_cast<unsigned char>(text[at]);
        if (lead < 0x80) continue;
        const auto s = after(lead);
        if (s.more == 0 || s.more >= text.size() - at) return false;
        const auto next = static_cast<unsigned char>(text[at + 1]);
        if (next < s.low || next > s.high) return false;
        for (std::size_t i = 2; i <= s.more; ++i)
            if ((static_cast<unsigned char>(text[at + i]) & 0xC0) != 0x80) return false;
        at += s.more;
    }
    return true;
}

}  // namespace fslock::core
