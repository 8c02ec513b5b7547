// What the reader of the demo sees.
#pragma once

#include <string>
#include <string_view>

#include "message.hpp"

namespace demo {

enum class tone { plain, faint, bad, good };

/// Prints lines with the time since the start. Uses colours on a terminal only.
class timeline {
 public:
    timeline();

    void title(std::string_view text);
    void line(steady at, tone t, const std::string& text);
    /// A turn of no interest of its own; the next line is preceded by one for all such turns.
    void turn(char worker, int number);
    /// Without a time.
    void verdict(bool good, std::string_view text);

    [[nodiscard]] steady start() const noexcept { return start_; }

 private:
    void say_turns();
    void print(tone t, std::string_view when, std::string_view text) const;

    steady start_;
    long last_ms_ = 0;
    bool colours_;
    std::string turns_;  ///< whose, in order
    int first_ = 0;
    int last_ = 0;
};

/// `A`, `A and B`, `A, B and C`.
[[nodiscard]] std::string enumerate(std::string_view letters);

/// With one decimal.
[[nodiscard]] std::string milliseconds_of(std::chrono::steady_clock::duration d);

}  // namespace demo
