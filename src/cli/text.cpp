#include "text.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace cli {
namespace {

/// The length of the UTF-8 character at the beginning of `text`, or 0.
std::size_t character(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const auto first = byte(0);
    const std::size_t length = first < 0x80 ? 1 : first >> 5 == 6 ? 2 : first >> 4 == 14 ? 3 : first >> 3 == 30 ? 4 : 0;
    if (length == 0 || length > text.size()) return 0;
    unsigned long code = length == 1 ? first : first & (0x7FU >> length);
    for (std::size_t i = 1; i < length; ++i) {
        if (byte(i) >> 6 != 2) return 0;
        code = code << 6 | (byte(i) & 0x3FU);
    }
    constexpr unsigned long smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    const bool surrogate = code >= 0xD800 && code < 0xE000;
    return code < smallest[length] || code > 0x10FFFF || surrogate ? 0 : length;
}

}  // namespace

std::string duration_text(std::chrono::milliseconds d) {
    using namespace std::chrono;
    const auto seconds_in = duration_cast<seconds>(d).count();
    if (seconds_in < 60) return std::to_string(seconds_in) + " s";
    const auto two = [](long long n, const char* unit, long long rest, const char* smaller) {
        auto text = std::to_string(n) + ' ' + unit;
        if (rest != 0) text += ' ' + std::to_string(rest) + ' ' + smaller;
        return text;
    };
    if (seconds_in < 3600) return two(seconds_in / 60, "min", seconds_in % 60, "s");
    if (seconds_in < 86'400) return two(seconds_in / 3600, "h", seconds_in / 60 % 60, "min");
    return two(seconds_in / 86'400, "d", seconds_in / 3600 % 24, "h");
}

bool is_terminal(int fd) noexcept { return ::isatty(fd) == 1; }

painter::painter(int fd) noexcept {
    const char* const no_colour = std::getenv("NO_COLOR");
    const char* const terminal = std::getenv("TERM");
    const bool dumb = terminal == nullptr || std::string_view(terminal) == "dumb";
    on_ = is_terminal(fd) && !dumb && (no_colour == nullptr || *no_colour == '\0');
}

std::string painter::paint(colour c, const std::string& text) const {
    if (!on_ || c == colour::none) return text;
    const char* const code = c == colour::good ? "32" : c == colour::bad ? "31" : "2";
    return std::string("\033[") + code + 'm' + text + "\033[0m";
}

std::string printable(std::string_view text) {
    std::string out;
    for (const char c : text) out += static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? '?' : c;
    return out;
}

std::string json_string(std::string_view text) {
    std::string out = "\"";
    while (!text.empty()) {
        const auto length = character(text);
        const char c = text.front();
        if (length == 0) {
            out += '?';
        } else if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (static_cast<unsigned char>(c) < 0x20) {
            char code[8];
            std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(c));
            out += code;
        } else {
            out += text.substr(0, length);
        }
        text.remove_prefix(length == 0 ? 1 : length);
    }
    return out + '"';
}

}  // namespace cli
