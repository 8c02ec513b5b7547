// The record: one line of JSON that says who owns a lock.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "../os/world.hpp"
#include "task.hpp"

namespace fslock::core {

/// No reader looks at more than this; a larger file is not a record.
inline constexpr std::size_t record_limit = 4096;

/// What a record says. Times are milliseconds since the epoch by the owner's wall clock and are for people: no
/// verdict rests on them.
struct record {
    int pid = 0;
    os::shared_text hostname;
    std::optional<std::uint64_t> process_start_time;
    os::shared_text boot_id;  ///< empty: not recorded
    std::int64_t created_at_ms = 0;
    std::int64_t heartbeat_at_ms = 0;
    std::string writer_epoch;
    std::optional<std::uint64_t> pid_ns;
    os::witness_kind guard = os::witness_kind::none;
    std::optional<std::int64_t> heartbeat_ms;
    std::string label;

    friend bool operator==(const record&, const record&) = default;
};

/// For a line that is written at once and then forgotten.
using record_text = std::basic_string<char, std::char_traits<char>, frame_allocator<char>>;

/// The line for `r`, with its newline. Texts that are not UTF-8 have their bad bytes replaced by `?`, since a record
/// that nobody can read protects nobody. Times have 13 digits, so lines of one owner have one length.
template <class Text = std::string>  // or record_text
[[nodiscard]] Text format(const record& r, std::int64_t heartbeat_at_ms);
template <class Text = std::string>
[[nodiscard]] Text format(const record& r) {
    return format<Text>(r, r.heartbeat_at_ms);
}

/// What a file at a lock path turned out to hold.
enum class content : std::uint8_t {
    record,     ///< A record.
    malformed,  ///< Not a record, but it begins like one: empty, zeros, or a record that is cut off or damaged.
    foreign     ///< Nothing that a lock wrote.
};

struct parsed {
    content kind = content::foreign;
    record value;
};

/// Reads `text`. Never throws for what the text says: bad JSON, wrong types, numbers out of range and repeated keys
/// make it malformed or foreign. Unknown keys are ignored.
[[nodiscard]] parsed parse(std::string_view text);

/// Makes what reading needs, so that nothing has to be made while the program ends. Cheap when that was done.
void prepare_to_read() noexcept;

/// Whether two records are of one acquisition. Epochs alone may be equal, by a chance that hosts with the same pids and
/// coarse clocks have; then the rest tells.
[[nodiscard]] bool same_acquisition(const record& a, const record& b) noexcept;

/// `<pid>-<ns>`
[[nodiscard]] std::string epoch_of(int pid, std::int64_t stamp);
/// The nanosecond part of an epoch `<pid>-<ns>`, or 0.
[[nodiscard]] std::int64_t epoch_stamp(std::string_view writer_epoch) noexcept;

}  // namespace fslock::core
