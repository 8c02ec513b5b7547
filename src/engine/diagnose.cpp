// The compiled half of fslock/diagnose.hpp.
#include "fslock/diagnose.hpp"

#include <string>

#include "../core/place.hpp"
#include "../core/task.hpp"
#include "../os/changes.hpp"
#include "../os/posix_world.hpp"
#include "blocking.hpp"

namespace fslock {
namespace {

using os::lock_byte;
using os::lock_state;

/// The errors of trying; without one it works.
trial came_to(std::error_code error) {
    trial t;
    t.works = !error;
    t.error = detail::to_public(error);
    return t;
}

trial failed() { return trial(); }

/// A file to try things with, and its present name.
struct scrap {
    std::string path;
    os::new_file made;
};

core::task<directory_report> try_files(os::world& w, const core::place& where, directory_report r, scrap& file) {
    auto made = co_await w.create(file.path, 0600, where.kind());
    r.files = came_to(made.error());
    if (!made) co_return r;
    file.made = std::move(*made);
    const auto second = where.private_path(w);
    auto error = co_await w.link(file.made.file, file.path, second);
    r.hard_links = came_to(error);
    if (!error) (void)co_await w.unlink(second);
    error = co_await w.rename_exclusive(file.path, second);
    r.exclusive_rename = came_to(error);
    if (!error) file.path = second;
    co_return r;
}

core::task<directory_report> try_unnamed(os::world& w, const core::place& where, directory_report r) {
    auto made = co_await w.create_unnamed(where.where->path, 0600, where.kind());
    r.unnamed_files = came_to(made.error());
    if (!made) co_return r;
    const auto name = where.private_path(w);
    const auto error = co_await w.link(made->file, {}, name);
    r.unnamed_files = came_to(error);
    if (!error) (void)co_await w.unlink(name);
    co_return r;
}

/// By a second descriptor, as another process would.
core::task<directory_report> try_witness(os::world& w, const core::place& where, directory_report r, scrap& file) {
    const auto kind = w.system_witness();
    r.witness = kind == os::witness_kind::ofd ? "ofd" : kind == os::witness_kind::flock ? "flock" : "";
    if (!r.local) co_return r;
    auto other = co_await w.open(file.path, os::access::read, where.kind());
    r.witness_holds = came_to(other.error());
    if (!other) co_return r;
    const auto taken = co_await w.lock(file.made.file, lock_byte::witness, kind);
    const auto seen = co_await w.probe(*other, lock_byte::witness, kind);
    (void)co_await w.unlock(file.made.file, lock_byte::witness, kind);
    const auto gone = co_await w.probe(*other, lock_byte::witness, kind);
    const bool holds = taken == lock_state::free && seen == lock_state::held && gone == lock_state::free;
    if (!holds) r.witness_holds = failed();
    co_return r;
}

core::task<directory_report> try_clock(os::world& w, directory_report r, scrap& file) {
    const auto now = co_await w.touch(file.made.file);
    r.clock = came_to(now.error());
    if (now) r.clock_ahead = std::chrono::nanoseconds(*now - w.wall_ns());
    co_return r;
}

/// Removes the file, and hears of it.
core::task<directory_report> try_events(os::world& w, directory_report r, scrap& file) {
    const auto changes = os::open_changes();
    auto error = changes.error();
    if (!error) error = os::watch(*changes, file.path, os::watched::record).error();
    const auto removed = co_await w.unlink(file.path);
    if (removed) r.files = came_to(removed);
    r.events = came_to(error);
    // Whatever the kernel tells of a file on this machine is there when the call returns.
    if (!error) r.events.works = r.local && !os::read_changes(*changes).changes.empty();
    if (changes) os::close_descriptor(*changes);
    co_return r;
}

core::task<directory_report> try_all(os::world& w, core::place where) {
    directory_report r;
    r.local = !where.shared();
    scrap file;
    file.path = where.private_path(w);
    r = co_await try_files(w, where, r, file);
    if (!r.files.works) co_return r;
    r = co_await try_unnamed(w, where, r);
    r = co_await try_witness(w, where, r, file);
    r = co_await try_clock(w, r, file);
    co_return co_await try_events(w, r, file);
}

}  // namespace

directory_report diagnose(const std::filesystem::path& directory, error_code& ec) {
    auto& w = os::this_world();
    // The name of a lock that nobody has, for the names of temps beside it.
    const auto where = engine::place_at(w, directory / "fslock-doctor");
    ec = detail::to_public(directory.empty() ? std::make_error_code(std::errc::no_such_file_or_directory) : where.error());
    if (ec) return {};
    return core::run_to_end(try_all(w, *where));
}

directory_report diagnose(const std::filesystem::path& directory) {
    error_code ec;
    const auto r = diagnose(directory, ec);
    if (ec) throw system_error(ec, directory.string());
    return r;
}

}  // namespace fslock
