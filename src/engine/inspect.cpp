// The compiled half of fslock/inspect.hpp.
#include "fslock/inspect.hpp"

#include "../core/contend.hpp"
#include "../core/examine.hpp"
#include "../os/posix_world.hpp"
#include "directories.hpp"
#include "fslock/error.hpp"

namespace fslock {
namespace {

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

lock_info info_from(const core::finding& f, os::world& w) {
    lock_info info;
    const auto& e = f.evidence;
    info.malformed = e.kind == core::content::malformed;
    info.verdict = liveness_of(f.judged.what);
    info.proof = f.judged.proof;
    info.silence = f.judged.silence;
    if (info.malformed) return info;
    info.owner = core::describe(e.rec, w.self());
    info.age = std::max(std::chrono::milliseconds{w.wall_ns() / 1'000'000 - e.rec.created_at_ms},
                        std::chrono::milliseconds{0});
    return info;
}

}  // namespace

std::optional<lock_info> inspect(const std::filesystem::path& path, error_code& ec) {
    auto& w = os::this_world();
    core::place where;
    ec = core::split(path, where.lock);
    if (ec) return {};
    auto directory = engine::directories::instance().look(w, where.lock.directory());
    ec = directory.error();
    if (ec) return {};
    where.where = std::move(*directory);
    core::observation seen;
    const options limits;
    const core::prepared nothing;
    const auto f = core::run_to_end(
        core::examine(w, where, where.path(), core::subject::lock, limits, seen, nothing));
    if (f.state == core::reading::absent) return {};
    if (f.state != core::reading::seen) {
        ec = f.error;
    } else if (f.judged.what == core::fate::not_a_lock) {
        ec = errc::not_a_lock_file;
    }
    if (ec) return {};
    return info_from(f, w);
}

std::optional<lock_info> inspect(const std::filesystem::path& path) {
    error_code ec;
    auto info = inspect(path, ec);
    if (ec) throw system_error(ec, path.string());
    return info;
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
