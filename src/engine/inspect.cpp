// Looking at locks: the compiled half of fslock/inspect.hpp.
#include "fslock/inspect.hpp"

#include <limits>
#include <mutex>
#include <string>
#include <unordered_map>

#include "../core/reports.hpp"
#include "../core/examine.hpp"
#include "../os/listing.hpp"
#include "../os/per_process.hpp"
#include "../os/posix_world.hpp"
#include "blocking.hpp"
#include "fslock/error.hpp"

namespace fslock {
namespace {

/// What was seen at each path, so that looks add up. Thread-safe.
class memory {
 public:
    core::observation recall(const std::string& path) {
        const std::lock_guard lock(mutex_);
        const auto at = seen_.find(path);
        return at == seen_.end() ? core::observation() : at->second;
    }
    void note(const std::string& path, core::observation seen) {
        constexpr std::size_t most = 4096;
        const std::lock_guard lock(mutex_);
        if (seen_.size() >= most) seen_.clear();
        seen_[path] = std::move(seen);
    }

 private:
    std::mutex mutex_;
    std::unordered_map<std::string, core::observation> seen_;
};

constinit os::per_process<memory> inspected;

liveness liveness_of(core::fate f) {
    switch (f) {
        case core::fate::alive: return liveness::alive;
        case core::fate::dead: return liveness::dead;
        case core::fate::being_reclaimed: return liveness::being_reclaimed;
        case core::fate::unknown:
        case core::fate::not_a_lock: break;
    }
    return liveness::unknown;
}

lock_info info_from(const core::finding& f, const core::place& where, os::world& w) {
    lock_info info;
    const auto& e = f.evidence;
    info.path = where.path();
    info.malformed = e.kind == core::content::malformed;
    info.verdict = liveness_of(f.judged.what);
    info.proof = f.judged.proof;
    info.silence = f.judged.silence;
    if (info.malformed) return info;
    info.owner = core::describe(e.rec, w.self());
    info.known_process = core::needs_process(e.rec, w.self());
    info.age = std::max(std::chrono::milliseconds{w.wall_ns() / 1'000'000 - e.rec.created_at_ms},
                        std::chrono::milliseconds{0});
    return info;
}

std::optional<lock_info> look_at(os::world& w, const core::place& where, error_code& ec) {
    const options limits;
    const core::prepared nothing;
    auto seen = inspected.get().recall(where.path());
    const auto f = core::run_to_end(
        core::examine(w, where, where.path(), core::subject::lock, limits, seen, nothing));
    inspected.get().note(where.path(), std::move(seen));
    if (f.state == core::reading::absent) return {};
    if (f.state != core::reading::seen) {
        ec = detail::to_public(f.error);
    } else if (f.judged.what == core::fate::not_a_lock) {
        ec = errc::not_a_lock_file;
    }
    if (ec) return {};
    return info_from(f, where, w);
}

}  // namespace

std::optional<lock_info> inspect(const std::filesystem::path& path, error_code& ec) {
    ec = {};
    auto& w = os::this_world();
    const auto where = engine::place_at(w, path);
    ec = detail::to_public(where.error());
    if (ec) return {};
    return look_at(w, *where, ec);
}

std::optional<lock_info> inspect(const std::filesystem::path& path) {
    error_code ec;
    auto info = inspect(path, ec);
    if (ec) throw system_error(ec, path.string());
    return info;
}

std::vector<lock_info> list_locks(const std::filesystem::path& directory, error_code& ec) {
    std::vector<lock_info> all;
    const auto found = os::list_directory(directory, std::numeric_limits<std::size_t>::max(), os::last_link::follow);
    ec = detail::to_public(found.error());
    if (ec) return all;
    for (const auto& entry : found->entries) {
        const bool may_be_lock = entry.kind == os::file_kind::regular && !core::is_reserved(entry.name) &&
                                 !entry.name.starts_with(".nfs");
        if (!may_be_lock) continue;
        error_code why;
        auto info = inspect(directory / entry.name, why);
        if (why == errc::not_a_lock_file || (!info && !why)) continue;
        if (!info) {
            info.emplace();
            std::error_code failed;
            info->path = std::filesystem::absolute(directory / entry.name, failed);
            info->error = why;
        }
        all.push_back(std::move(*info));
    }
    return all;
}

std::vector<lock_info> list_locks(const std::filesystem::path& directory) {
    error_code ec;
    auto all = list_locks(directory, ec);
    if (ec) throw system_error(ec, directory.string());
    return all;
}

const char* to_string(liveness l) noexcept {
    switch (l) {
        case liveness::alive: return "alive";
        case liveness::dead: return "dead";
        case liveness::being_reclaimed: return "being reclaimed";
        case liveness::unknown: break;
    }
    return "unknown";
}

}  // namespace fslock
