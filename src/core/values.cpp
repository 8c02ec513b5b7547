// The public values that know neither the disk nor Asio: error codes, options, the words for events.
#include <chrono>
#include <string>
#include <string_view>

#include "fslock/error.hpp"
#include "fslock/event.hpp"
#include "fslock/options.hpp"
#include "utf8.hpp"

namespace fslock {
namespace {

using namespace std::chrono_literals;

class category final : public std::error_category {
 public:
    const char* name() const noexcept override { return "fslock"; }
    std::string message(int code) const override {
        switch (static_cast<errc>(code)) {
            case errc::lost:
                return "the lock was lost: its record was removed or replaced; stop the work it protects and acquire "
                       "again";
            case errc::not_owner: return "the record belongs to somebody else; inspect it to see to whom";
            case errc::not_a_lock_file:
                return "something that is not a lock file is at the path and was not touched; choose another path or "
                       "move it away";
            case errc::bad_options: return "an option is out of its range; see the comments in fslock/options.hpp";
            case errc::reserved_name:
                return "names like .x.reclaim and .x.tmp.1.2.3 are fslock's own; choose another name for the lock";
            case errc::limit_reached:
                return "there are more entries than sweep_options::most_entries; sweep a part, or raise the limit";
        }
        return "unknown fslock error";
    }
};

bool in_range(std::chrono::milliseconds value, std::chrono::milliseconds low, std::chrono::milliseconds high) {
    return low <= value && value <= high;
}

constexpr std::chrono::milliseconds longest = std::chrono::hours(24 * 365 * 10);
constexpr std::size_t longest_label = 256;

std::string in_quotes(std::string_view text) { return '"' + std::string(text) + '"'; }

}  // namespace

const std::error_category& error_category() noexcept {
    static const auto& instance = *new category;  // never destroyed: locks are lost at any late moment
    return instance;
}

/// Made before there are threads, one of which might fork while another makes it.
[[maybe_unused]] static const std::error_category& made_early = error_category();

std::error_code check(const options& o) noexcept {
    const bool good = in_range(o.heartbeat_interval, 1ms, 1h) && in_range(o.stale_after, 1ms, longest) &&
                      in_range(o.foreign_stale_after, o.stale_after, longest) &&
                      in_range(o.foreign_confirm, 0ms, longest) && in_range(o.malformed_grace, 0ms, longest) &&
                      in_range(o.poll_interval, 1ms, 1min) && in_range(o.warn_after, 0ms, longest) &&
                      (o.mode & ~0777U) == 0 && (o.mode & 0600U) == 0600U && o.label.size() <= longest_label &&
                      core::is_utf8(o.label);
    return good ? std::error_code() : make_error_code(errc::bad_options);
}

std::string to_string(const owner_info& o) {
    if (o.pid == 0) return "an unknown owner";
    std::string text = o.this_process ? "this process" : "pid " + std::to_string(o.pid);
    if (!o.hostname.empty() && !o.this_process) text += " on " + o.hostname;
    if (!o.label.empty()) text += ", " + in_quotes(o.label);
    return text;
}

const char* to_string(proof p) noexcept {
    switch (p) {
        case proof::none: return "no proof";
        case proof::witness_held: return "its kernel lock is held";
        case proof::witness_free: return "its kernel lock is gone";
        case proof::process_alive: return "its process lives";
        case proof::process_gone: return "its process is gone";
        case proof::process_reused: return "its pid belongs to another process";
        case proof::leftover: return "left over by an earlier program of this process";
        case proof::earlier_boot: return "of an earlier boot, and silent";
        case proof::silent: return "silent for too long";
        case proof::malformed_unchanged: return "a damaged record that nobody completed";
    }
    return "no proof";
}

const char* to_string(loss l) noexcept {
    switch (l) {
        case loss::none: break;
        case loss::removed: return "its record was removed";
        case loss::replaced: return "its record was replaced";
        case loss::directory_gone: return "its directory was moved or removed";
    }
    return "not lost";
}

const char* to_string(event_kind k) noexcept {
    switch (k) {
        case event_kind::waiting: return "waiting";
        case event_kind::reclaimed: return "reclaimed";
        case event_kind::reclaim_blocked: return "reclaim blocked";
        case event_kind::stale_but_alive: return "stale but alive";
        case event_kind::held_long: return "held long";
        case event_kind::beat_failed: return "heartbeat failed";
        case event_kind::beat_recovered: return "heartbeat recovered";
        case event_kind::at_risk: return "at risk";
        case event_kind::lost: return "lost";
        case event_kind::polling: return "polling";
    }
    return "unknown";
}

std::string to_string(const event& e) {
    std::string text = e.path.native() + ": " + to_string(e.kind);
    const auto age = std::to_string(e.age.count()) + " ms";
    switch (e.kind) {
        case event_kind::waiting:
            text += " for " + to_string(e.owner);
            if (e.proof != proof::none) text += std::string(" (") + to_string(e.proof) + ")";
            break;
        case event_kind::reclaimed:
            text += " from " + to_string(e.owner) + " (" + to_string(e.proof);
            text += e.age.count() != 0 ? ", silent for " + age + ")" : ")";
            break;
        case event_kind::reclaim_blocked: text += " by " + to_string(e.owner); break;
        case event_kind::stale_but_alive:
        case event_kind::held_long: text += ": " + to_string(e.owner) + ", for " + age; break;
        case event_kind::beat_failed:
        case event_kind::beat_recovered:
        case event_kind::at_risk:
        case event_kind::polling: break;
        case event_kind::lost:
            if (e.loss != loss::none) text += std::string(": ") + to_string(e.loss);
            break;
    }
    const bool said = e.kind == event_kind::lost && e.loss != loss::none;
    if (e.error && !said) text += ": " + e.error.message();
    if (e.count != 0) text += " (" + std::to_string(e.count) + "x)";
    return text;
}

}  // namespace fslock
