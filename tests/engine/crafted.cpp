#include "crafted.hpp"

#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <sstream>
#include <thread>

#include "fslock/fslock.hpp"
#include "support/directory.hpp"

namespace support {
namespace {

std::string wall_ms(milliseconds ago) {
    const auto now = std::chrono::system_clock::now().time_since_epoch() - ago;
    return std::to_string(std::chrono::duration_cast<milliseconds>(now).count());
}

/// Unlike any that this process has seen: a record that came back is a change, and a change is a sign of life.
std::string fresh_epoch(pid_t pid) {
    static std::atomic<long> stamp{1'700'000'000'000'000'000};
    return std::to_string(pid) + '-' + std::to_string(++stamp);
}

std::string in_quotes(std::string_view text) {
    return '"' + std::string(text) + '"';
}

}  // namespace

std::string nodename() {
    utsname names{};
    if (::uname(&names) != 0) throw std::runtime_error("uname");
    return names.nodename;
}

std::string boot_id() {
    auto id = read_file("/proc/sys/kernel/random/boot_id");
    return id.substr(0, id.find('\n'));
}

std::string start_time_of(pid_t pid) {
    const auto stat = read_file("/proc/" + std::to_string(pid) + "/stat");
    const auto name_end = stat.rfind(')');
    if (name_end == std::string::npos) return {};
    std::istringstream fields(stat.substr(name_end + 1));
    std::string field;
    for (int number = 3; number <= 22; ++number) fields >> field;
    return field;
}

std::string pid_namespace() {
    struct stat facts {};
    return ::stat("/proc/self/ns/pid", &facts) == 0 ? std::to_string(facts.st_ino) : std::string();
}

crafted_record& crafted_record::set(std::string_view key, std::string json) {
    const auto at = std::find_if(fields_.begin(), fields_.end(), [&](const auto& f) { return f.first == key; });
    if (at != fields_.end()) {
        at->second = std::move(json);
    } else {
        fields_.emplace_back(key, std::move(json));
    }
    return *this;
}

crafted_record& crafted_record::text(std::string_view key, std::string_view value) {
    return set(key, in_quotes(value));
}

crafted_record& crafted_record::without(std::string_view key) {
    std::erase_if(fields_, [&](const auto& f) { return f.first == key; });
    return *this;
}

crafted_record& crafted_record::acquired_before(milliseconds ago) {
    return set("created_at_ms", wall_ms(ago));
}
crafted_record& crafted_record::beaten_before(milliseconds ago) {
    return set("heartbeat_at_ms", wall_ms(ago));
}

std::string crafted_record::line() const {
    std::string out;
    for (const auto& [key, json] : fields_) out += (out.empty() ? '{' : ',') + in_quotes(key) + ':' + json;
    return out + "}\n";
}

void crafted_record::write(const std::filesystem::path& path, std::chrono::seconds age) const {
    write_file(path, line());
    if (age != 0s) age_file(path, age);
}

crafted_record seed_record(pid_t pid) {
    crafted_record r;
    r.set("pid", std::to_string(pid)).text("hostname", nodename());
    const auto start = start_time_of(pid);
    r.set("process_start_time", start.empty() ? "4711" : start).text("boot_id", boot_id());
    r.acquired_before(0ms).beaten_before(0ms);
    return r.text("writer_epoch", fresh_epoch(pid));
}

crafted_record legacy_record(pid_t pid) {
    return seed_record(pid).without("process_start_time").without("boot_id");
}

crafted_record peer_record(pid_t pid) {
    auto r = seed_record(pid);
    if (const auto ns = pid_namespace(); !ns.empty()) r.set("pid_ns", ns);
    return r.set("heartbeat_ms", "25");
}

crafted_record foreign_record() {
    return legacy_record(4711).text("hostname", nodename() + "-other").set("heartbeat_ms", "25");
}

std::string field_of(const std::string& line, std::string_view key) {
    const auto mark = in_quotes(key) + ':';
    const auto at = line.find(mark);
    if (at == std::string::npos) return {};
    const auto begin = at + mark.size();
    const bool quoted = line[begin] == '"';
    const auto end = quoted ? line.find('"', begin + 1) + 1 : line.find_first_of(",}", begin);
    return line.substr(begin, end - begin);
}

std::string fresh_name() {
    static std::atomic<int> number{0};
    return "lock" + std::to_string(++number);
}

fslock::options minutes() {
    fslock::options o;
    o.heartbeat_interval = 25ms;
    o.stale_after = 10min;
    o.foreign_stale_after = 30min;
    o.foreign_confirm = 100ms;
    o.malformed_grace = 10min;
    o.poll_interval = 10ms;
    return o;
}

fslock::options never_polls() {
    auto o = minutes();
    o.poll_interval = 1min;
    return o;
}

fslock::options never_beats() {
    auto o = minutes();
    o.heartbeat_interval = 1h;
    return o;
}

fslock::options told::listening(fslock::options o) const {
    o.on_event = [notes = notes_](const fslock::event& e) {
        const std::lock_guard lock(notes->mutex);
        notes->events.push_back(e);
    };
    return o;
}

std::vector<fslock::event> told::all() const {
    const std::lock_guard lock(notes_->mutex);
    return notes_->events;
}

std::vector<fslock::event> told::of(fslock::event_kind kind) const {
    auto some = all();
    std::erase_if(some, [&](const auto& e) { return e.kind != kind; });
    return some;
}

bool eventually(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + patience;
    while (!condition()) {
        if (std::chrono::steady_clock::now() > end) return false;
        std::this_thread::sleep_for(1ms);
    }
    return true;
}

void live_on(child::pipe_to_parent&) {
    for (;;) ::pause();
}

boost::test_tools::assertion_result linux_facilities(boost::unit_test::test_unit_id) {
    const directory d;
    const auto lock = fslock::acquire(d / "x");
    boost::test_tools::assertion_result r(!field_of(read_file(d / "x"), "process_start_time").empty());
    if (!r) r.message() << "the library was built without the facilities of Linux";
    return r;
}

}  // namespace support
