#include "record.hpp"

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <limits>
#include <new>

#include "utf8.hpp"

namespace fslock::core {
namespace {

using simdjson::dom::element;

// ---- writing ---------------------------------------------------------------------------------------------------

template <class Text>
void append_number(Text& to, std::uint64_t n) {
    char digits[24];
    const auto end = std::to_chars(digits, digits + sizeof digits, n).ptr;
    to.append(digits, end);
}

template <class Text>
void append_escaped(Text& to, std::string_view text) {
    static constexpr char hex[] = "0123456789abcdef";
    const auto as_it_is = [](unsigned char c) { return c >= 0x20 && c < 0x80 && c != '"' && c != '\\'; };
    if (std::all_of(text.begin(), text.end(), as_it_is)) {
        to += text;
        return;
    }
    const bool readable = is_utf8(text);
    for (const char c : text) {
        const auto u = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            to += '\\';
            to += c;
        } else if (u < 0x20) {
            to += "\\u00";
            to += hex[u >> 4];
            to += hex[u & 15];
        } else {
            to += u >= 0x80 && !readable ? '?' : c;
        }
    }
}

/// `key` with the punctuation around it: `,"key":`
template <class Text>
void append_text(Text& to, std::string_view key, std::string_view value) {
    to += key;
    to += '"';
    append_escaped(to, value);
    to += '"';
}

template <class Text>
void append_value(Text& to, std::string_view key, std::uint64_t value) {
    to += key;
    append_number(to, value);
}

/// 13 digits are the years 2001 to 2286; a JSON number must not begin with 0, so the clock of a machine without one
/// is written as the first of them.
std::uint64_t thirteen_digits(std::int64_t ms) {
    return static_cast<std::uint64_t>(std::clamp<std::int64_t>(ms, 1'000'000'000'000, 9'999'999'999'999));
}

std::string_view name_of(os::witness_kind guard) { return guard == os::witness_kind::ofd ? "ofd" : "flock"; }

// ---- reading ---------------------------------------------------------------------------------------------------

constexpr std::string_view first_key = "{\"pid\":";

bool looks_like_record(std::string_view text) {
    if (std::all_of(text.begin(), text.end(), [](char c) { return c == '\0'; })) return true;  // also when empty
    return text.substr(0, first_key.size()) == first_key.substr(0, text.size());
}

bool read_integer(const element& from, std::int64_t low, std::int64_t high, std::int64_t& into) {
    std::int64_t n = 0;
    if (from.get_int64().get(n) != simdjson::SUCCESS || n < low || n > high) return false;
    into = n;
    return true;
}

bool read_unsigned(const element& from, std::optional<std::uint64_t>& into) {
    std::uint64_t n = 0;
    if (from.get_uint64().get(n) != simdjson::SUCCESS) return false;
    into = n;
    return true;
}

template <class Text>
bool read_text(const element& from, Text& into) {
    std::string_view s;
    if (from.get_string().get(s) != simdjson::SUCCESS) return false;
    into = s;
    return true;
}

struct field {
    std::string_view key;
    bool (*read)(const element&, record&);
};

constexpr std::int64_t max_int64 = std::numeric_limits<std::int64_t>::max();

constexpr field fields[] = {
    {"pid",
     [](const element& e, record& r) {
         std::int64_t n = 0;
         if (!read_integer(e, 1, std::numeric_limits<std::int32_t>::max(), n)) return false;
         r.pid = static_cast<int>(n);
         return true;
     }},
    {"hostname", [](const element& e, record& r) { return read_text(e, r.hostname); }},
    {"process_start_time", [](const element& e, record& r) { return read_unsigned(e, r.process_start_time); }},
    {"boot_id", [](const element& e, record& r) { return read_text(e, r.boot_id); }},
    {"created_at_ms", [](const element& e, record& r) { return read_integer(e, 0, max_int64, r.created_at_ms); }},
    {"heartbeat_at_ms",
     [](const element& e, record& r) { return read_integer(e, 0, max_int64, r.heartbeat_at_ms); }},
    {"writer_epoch", [](const element& e, record& r) { return read_text(e, r.writer_epoch); }},
    {"pid_ns", [](const element& e, record& r) { return read_unsigned(e, r.pid_ns); }},
    {"guard",
     [](const element& e, record& r) {
         std::string name;
         if (!read_text(e, name)) return false;
         if (name == "ofd") r.guard = os::witness_kind::ofd;
         if (name == "flock") r.guard = os::witness_kind::flock;
         return true;
     }},
    {"heartbeat_ms",
     [](const element& e, record& r) {
         std::int64_t n = 0;
         if (!read_integer(e, 1, max_int64, n)) return false;
         r.heartbeat_ms = n;
         return true;
     }},
    {"label", [](const element& e, record& r) { return read_text(e, r.label); }},
};

constexpr unsigned bit(std::string_view key) {
    for (unsigned i = 0; i < std::size(fields); ++i)
        if (fields[i].key == key) return 1U << i;
    return 0;
}

constexpr unsigned required = bit("pid") | bit("hostname") | bit("created_at_ms") | bit("heartbeat_at_ms");

constexpr std::size_t deepest = 8;

/// Parsers that wait for their next use. Made ahead and never destroyed: locks are released, and threads of ours may
/// still run, while the program ends and what simdjson needs to make a parser is gone.
class parser_store {
 public:
    using parser = simdjson::dom::parser;

    parser* take() noexcept {
        for (auto& place : waiting_)
            if (auto* const p = place.exchange(nullptr)) return p;
        return make();
    }
    void give_back(parser* p) noexcept {
        for (auto& place : waiting_) {
            parser* none = nullptr;
            if (place.compare_exchange_strong(none, p)) return;
        }
        delete p;
    }
    void fill() noexcept {
        for (auto& place : waiting_)
            if (place.load() == nullptr) give_back(make());
    }

 private:
    /// Null when there is no memory.
    static parser* make() noexcept {
        auto* const p = new (std::nothrow) parser(record_limit);
        if (p != nullptr && p->allocate(record_limit, deepest) == simdjson::SUCCESS) return p;
        delete p;
        return nullptr;
    }
    std::array<std::atomic<parser*>, 2> waiting_{};
};

constinit parser_store parsers;

/// Has one of them for the moment.
class borrowed_parser {
 public:
    borrowed_parser() noexcept : parser_(parsers.take()) {}
    borrowed_parser(const borrowed_parser&) = delete;
    borrowed_parser& operator=(const borrowed_parser&) = delete;
    ~borrowed_parser() {
        if (parser_ != nullptr) parsers.give_back(parser_);
    }
    explicit operator bool() const noexcept { return parser_ != nullptr; }
    simdjson::dom::parser* operator->() const noexcept { return parser_; }

 private:
    simdjson::dom::parser* const parser_;
};

/// Fills `into`. A record of ours begins with its pid and may come from a version that dropped the rest; any other
/// object must have all that the first version always wrote, or a data file would pass for a record.
bool read_record(std::string_view text, record& into) {
    const borrowed_parser parser;
    if (!parser) return false;
    simdjson::dom::object object;
    if (parser->parse(text.data(), text.size()).get_object().get(object) != simdjson::SUCCESS) return false;
    unsigned seen = 0;
    for (const auto& [key, value] : object) {
        const unsigned known = bit(key);
        if (known == 0) continue;
        if ((seen & known) != 0) return false;
        seen |= known;
        const auto& f = *std::find_if(std::begin(fields), std::end(fields),
                                      [k = key](const field& candidate) { return candidate.key == k; });
        if (!f.read(value, into)) return false;
    }
    if ((seen & bit("pid")) == 0) return false;
    return (seen & required) == required || looks_like_record(text);
}

}  // namespace

void prepare_to_read() noexcept { parsers.fill(); }

template <class Text>
Text format(const record& r, std::int64_t heartbeat_at_ms) {
    Text line;
    line.reserve(384);
    line += first_key;
    append_number(line, static_cast<std::uint64_t>(r.pid));
    append_text(line, R"(,"hostname":)", r.hostname.view());
    if (r.process_start_time) append_value(line, R"(,"process_start_time":)", *r.process_start_time);
    if (!r.boot_id.empty()) append_text(line, R"(,"boot_id":)", r.boot_id.view());
    append_value(line, R"(,"created_at_ms":)", thirteen_digits(r.created_at_ms));
    append_value(line, R"(,"heartbeat_at_ms":)", thirteen_digits(heartbeat_at_ms));
    append_text(line, R"(,"writer_epoch":)", r.writer_epoch);
    if (r.pid_ns) append_value(line, R"(,"pid_ns":)", *r.pid_ns);
    if (r.guard != os::witness_kind::none) append_text(line, R"(,"guard":)", name_of(r.guard));
    if (r.heartbeat_ms) append_value(line, R"(,"heartbeat_ms":)", static_cast<std::uint64_t>(*r.heartbeat_ms));
    if (!r.label.empty()) append_text(line, R"(,"label":)", r.label);
    line += "}\n";
    return line;
}

template std::string format(const record& r, std::int64_t heartbeat_at_ms);
template record_text format(const record& r, std::int64_t heartbeat_at_ms);

parsed parse(std::string_view text) {
    parsed p;
    if (text.size() > record_limit) return p;
    if (!text.empty() && read_record(text, p.value)) {
        p.kind = content::record;
    } else {
        p.value = {};
        p.kind = looks_like_record(text) ? content::malformed : content::foreign;
    }
    return p;
}

std::string epoch_of(int pid, std::int64_t stamp) {
    char text[32];  // a sign at most, and 10 and 19 digits
    auto* end = std::to_chars(text, text + 11, pid).ptr;
    *end++ = '-';
    end = std::to_chars(end, text + sizeof text, stamp).ptr;
    return {text, end};
}

bool same_acquisition(const record& a, const record& b) noexcept {
    const bool same_host = a.boot_id == b.boot_id && (!a.boot_id.empty() || a.hostname == b.hostname);
    return same_host && a.writer_epoch == b.writer_epoch && a.process_start_time == b.process_start_time &&
           a.pid_ns == b.pid_ns;
}

std::int64_t epoch_stamp(std::string_view writer_epoch) noexcept {
    const auto dash = writer_epoch.rfind('-');
    if (dash == std::string_view::npos) return 0;
    std::int64_t ns = 0;
    const auto [end, error] =
        std::from_chars(writer_epoch.data() + dash + 1, writer_epoch.data() + writer_epoch.size(), ns);
    return error == std::errc{} && end == writer_epoch.data() + writer_epoch.size() && ns > 0 ? ns : 0;
}

}  // namespace fslock::core
