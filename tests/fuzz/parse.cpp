// Reading records: whatever a file holds.
#include <string>
#include <string_view>

#include "bytes.hpp"
#include "core/record.hpp"
#include "core/utf8.hpp"
#include "property.hpp"

namespace {

using namespace fslock::core;
using fslock::os::witness_kind;
using fuzz::require;

std::int64_t in_thirteen_digits(std::int64_t ms) {
    return std::clamp<std::int64_t>(ms, 1'000'000'000'000, 9'999'999'999'999);
}

/// What remains of a record when it has been written.
record as_written(record r) {
    r.created_at_ms = in_thirteen_digits(r.created_at_ms);
    r.heartbeat_at_ms = in_thirteen_digits(r.heartbeat_at_ms);
    return r;
}

/// A record that is cut off, by a torn write or a full disk, is damaged and nothing else.
void cut_off(const std::string& line, std::size_t at) {
    const auto whole = line.size() - 1;  // but for its newline
    const auto kind = parse(std::string_view(line).substr(0, at)).kind;
    require(kind == (at < whole ? content::malformed : content::record), "a record that is cut off is damaged");
}

void comes_back(const record& r, std::size_t cut) {
    const auto line = format(r);
    if (line.size() > record_limit) return;
    const auto p = parse(line);
    require(p.kind == content::record, "what is written can be read");
    require(p.value == as_written(r), "what is read is what was written");
    require(format(p.value) == line, "what was read is written as it was");
    cut_off(line, cut % (line.size() + 1));
}

void read_anything(std::string_view text) {
    const auto p = parse(text);
    if (p.kind == content::record) {
        comes_back(p.value, text.size());
    } else {
        require(p.value == record{}, "nothing is kept of what is no record");
    }
    require(text.size() <= record_limit || p.kind == content::foreign, "what is too long is foreign");
    (void)epoch_stamp(text);
}

void write_anything(fuzz::bytes from) {
    record r;
    r.pid = static_cast<int>(from.between(1, 2'147'483'647));
    r.created_at_ms = from.number<std::int64_t>();
    r.heartbeat_at_ms = from.number<std::int64_t>();
    r.process_start_time = from.maybe(from.number<std::uint64_t>());
    r.pid_ns = from.maybe(from.number<std::uint64_t>());
    r.heartbeat_ms = from.maybe(from.between(1, 9'223'372'036'854'775'807));
    r.guard = from.any_of({witness_kind::none, witness_kind::ofd, witness_kind::flock});
    const auto cut = from.number<std::uint16_t>();
    r.hostname = from.text(64);
    r.boot_id = from.text(64);
    r.writer_epoch = from.text(64);
    r.label = from.text(255);
    if (is_utf8(r.hostname.view()) && is_utf8(r.boot_id.view()) && is_utf8(r.writer_epoch) && is_utf8(r.label)) {
        comes_back(r, cut);
    } else if (const auto line = format(r); line.size() <= record_limit) {
        require(parse(line).kind == content::record, "what is written can be read, whatever the texts");
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    read_anything({reinterpret_cast<const char*>(data), size});
    write_anything({data, size});
    return 0;
}
