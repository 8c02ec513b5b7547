#include "message.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace demo {
namespace {

constexpr char separator = '\t';
constexpr std::size_t longest_text = 400;  // a line is never longer than PIPE_BUF, which is at least 512

std::string one_line(std::string_view text) {
    std::string safe(text.substr(0, longest_text));
    std::replace_if(
        safe.begin(), safe.end(), [](unsigned char c) { return c < ' '; }, ' ');
    return safe;
}

template <class Number>
bool parse(std::string_view text, Number& out) {
    const auto* const end = text.data() + text.size();
    const auto result = std::from_chars(text.data(), end, out);
    return result.ec == std::errc() && result.ptr == end;
}

}  // namespace

std::string to_line(const message& m) {
    std::string line = std::to_string(m.at.time_since_epoch().count());
    const std::string worker(1, m.worker);
    const std::string what(1, static_cast<char>(m.what));
    for (const auto& field : {worker, what, one_line(m.epoch), std::to_string(m.number), one_line(m.about)})
        line += separator + field;
    return line + separator + one_line(m.text) + '\n';
}

std::optional<message> from_line(std::string_view line) {
    std::array<std::string_view, 7> fields;
    for (auto& field : fields) {
        field = line.substr(0, line.find(separator));
        line.remove_prefix(std::min(line.size(), field.size() + 1));
    }
    const auto& [at, worker, what, epoch, number, about, text] = fields;
    message m;
    steady::rep ticks = 0;
    if (!parse(at, ticks) || !parse(number, m.number) || worker.size() != 1 || what.size() != 1) return {};
    m.at = steady(steady::duration(ticks));
    m.worker = worker.front();
    m.what = static_cast<news>(what.front());
    m.epoch = epoch;
    m.about = about;
    m.text = text;
    return m;
}

}  // namespace demo
