// Words, colours and JSON for people and programs that read the output.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace cli {

/// "3 s", "2 min 5 s", "4 h 2 min", "3 d 4 h".
[[nodiscard]] std::string duration_text(std::chrono::milliseconds d);

/// Whether what is written to that descriptor is read on a terminal.
[[nodiscard]] bool is_terminal(int fd) noexcept;

enum class colour { none, good, bad, quiet };

/// Puts colours around words, on a terminal and unless NO_COLOR is set and not empty (no-color.org).
class painter {
 public:
    explicit painter(int fd) noexcept;
    [[nodiscard]] std::string paint(colour c, const std::string& text) const;

 private:
    bool on_;
};

/// What comes from outside may hold anything: control characters would reach the terminal.
[[nodiscard]] std::string printable(std::string_view text);

/// A JSON string. Bytes that are no UTF-8 become question marks.
[[nodiscard]] std::string json_string(std::string_view text);

}  // namespace cli
