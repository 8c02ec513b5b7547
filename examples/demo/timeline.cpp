#include "timeline.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace demo {
namespace {

constexpr std::size_t most_turns_shown = 20;

const char* code(tone t) {
    switch (t) {
        case tone::plain:
            return "";
        case tone::faint:
            return "\033[2m";
        case tone::bad:
            return "\033[1;31m";
        case tone::good:
            return "\033[1;32m";
    }
    return "";
}

bool wants_colours() {
    const char* const refused = std::getenv("NO_COLOR");
    const char* const terminal = std::getenv("TERM");
    return ::isatty(STDOUT_FILENO) == 1 && (refused == nullptr || *refused == '\0') &&
           (terminal == nullptr || std::string_view(terminal) != "dumb");
}

}  // namespace

timeline::timeline() : start_(std::chrono::steady_clock::now()), colours_(wants_colours()) {}

void timeline::print(tone t, std::string_view when, std::string_view text) const {
    const bool coloured = colours_ && t != tone::plain;
    std::printf("%9.*s  %s%.*s%s\n", static_cast<int>(when.size()), when.data(), coloured ? code(t) : "",
                static_cast<int>(text.size()), text.data(), coloured ? "\033[0m" : "");
    (void)std::fflush(stdout);
}

void timeline::title(std::string_view text) {
    std::printf("%.*s\n\n", static_cast<int>(text.size()), text.data());
}

void timeline::line(steady at, tone t, const std::string& text) {
    say_turns();
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(at - start_).count();
    // Workers read the clock before they write: by a hair, news can be out of order.
    last_ms_ = std::max(last_ms_, static_cast<long>(ms));
    print(t, std::to_string(last_ms_) + " ms", text);
}

void timeline::turn(char worker, int number) {
    if (turns_.empty()) first_ = number;
    last_ = number;
    turns_ += worker;
}

void timeline::say_turns() {
    if (turns_.empty()) return;
    const auto turns = std::exchange(turns_, {});
    std::string text;
    for (const char worker : turns.substr(0, most_turns_shown)) text += std::string(1, worker) + ' ';
    if (turns.size() > most_turns_shown) text += "... ";
    const auto last = std::to_string(last_);
    text += turns.size() == 1 ? "took a turn: entry " + last
                              : "took turns: entries " + std::to_string(first_) + " to " + last;
    print(tone::faint, "...", text);
}

void timeline::verdict(bool good, std::string_view text) {
    say_turns();
    print(good ? tone::good : tone::bad, good ? "ok" : "FAILED", text);
}

std::string enumerate(std::string_view letters) {
    std::string text;
    for (std::size_t i = 0; i < letters.size(); ++i) {
        if (i > 0) text += i + 1 == letters.size() ? " and " : ", ";
        text += letters[i];
    }
    return text;
}

std::string milliseconds_of(std::chrono::steady_clock::duration d) {
    char text[32];
    (void)std::snprintf(text, sizeof text, "%.1f ms", std::chrono::duration<double, std::milli>(d).count());
    return text;
}

}  // namespace demo
