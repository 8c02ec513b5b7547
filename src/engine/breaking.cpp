// Breaking a lock: the compiled half of `break_lock` in fslock/inspect.hpp.
#include "../core/breaking.hpp"

#include <string>

#include "../core/reports.hpp"
#include "../os/posix_world.hpp"
#include "blocking.hpp"
#include "fslock/inspect.hpp"

namespace fslock {
namespace {

core::break_outcome break_at(const std::filesystem::path& path, std::string_view writer_epoch) {
    auto& w = os::this_world();
    const auto where = engine::place_at(w, path);
    if (!where) {
        core::break_outcome failed;
        failed.error = where.error();
        return failed;
    }
    engine::blocking_sleeper sleeper;
    engine::silent_reporter nobody;
    core::sightings fresh;
    options o;
    o.mode = 0644;  // of the token: the owner may be another user
    core::contender c(w, *where, o, sleeper, nobody, fresh);
    return core::run_to_end(core::break_record(c, std::string(writer_epoch)));
}

}  // namespace

bool break_lock(const std::filesystem::path& path, std::string_view writer_epoch, error_code& ec) {
    const auto out = break_at(path, writer_epoch);
    ec = detail::to_public(out.error);
    return out.removed;
}

bool break_lock(const std::filesystem::path& path, std::string_view writer_epoch) {
    const auto out = break_at(path, writer_epoch);
    if (!out.error) return out.removed;
    auto text = path.string();
    if (out.token_holder.pid != 0)
        text += ": its removal is up to " + to_string(core::describe(out.token_holder, os::this_world().self()));
    throw system_error(detail::to_public(out.error), text);
}

}  // namespace fslock
