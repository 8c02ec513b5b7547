#include "stage.hpp"

#include <algorithm>
#include <cerrno>

#include "core/read_record.hpp"
#include "fslock/error.hpp"
#include "os/posix_world.hpp"

namespace faults {
namespace {

using core::ending;
using fslock::durability;
using fslock::witness;
using os::fs_class;
using os::lock_byte;
using os::lock_state;
using os::witness_kind;

constexpr ground all_grounds[] = {
    {"a local filesystem"},
    {"named temps and full durability", fs_class::local, core::publishing::linked, durability::full},
    {"renamed temps", fs_class::local, core::publishing::renamed},
    {"created in place", fs_class::local, core::publishing::created},
    {"without a witness", fs_class::local, core::publishing::unnamed, durability::relaxed, witness::off},
    {"a shared filesystem", fs_class::shared},
    {"a shared filesystem with renamed temps", fs_class::shared, core::publishing::renamed},
    {"a shared filesystem, created in place", fs_class::shared, core::publishing::created},
};

/// The longest that anything of ours may be in the way: a token without a witness counts for ten minutes.
constexpr std::chrono::minutes longest_grace{11};

struct silent final : core::reporter {
    void report(fslock::event) override {}
};

core::read_outcome read_plainly(const std::string& path) {
    return core::run_to_end(core::read_record_at(os::this_world(), path, fs_class::local));
}

/// Asked through a descriptor of its own, as others ask.
lock_state witness_of(const std::string& path, witness_kind kind) {
    auto& w = os::this_world();
    const auto file = w.open(path, os::access::read, fs_class::local).await_resume();
    if (!file) return lock_state::unknown;
    return w.probe(*file, lock_byte::witness, kind).await_resume();
}

/// Whether others on this host take the owner of the record for alive, as long as this process is.
bool is_orphan(const std::string& path) {
    const auto there = read_plainly(path).what.value;
    return there.pid == os::this_world().self().pid && there.process_start_time && there.guard == witness_kind::none;
}

bool is_temp(const std::string& path) { return path.find("/.x.tmp.") != std::string::npos; }

}  // namespace

std::span<const ground> grounds() noexcept { return all_grounds; }

std::size_t open_descriptors() {
    const auto all = std::filesystem::directory_iterator("/proc/self/fd");
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

stage::stage(const ground& g) {
    auto facts = *os::this_world().classify(dir.path()).await_resume();
    facts.kind = g.kind;
    where.where = std::make_shared<core::directory>(dir.path(), facts);
    where.where->method = g.method;
    (void)core::split(dir / "x", where.lock);
    opts.durability = g.durability;
    opts.witness = g.witness;
    opts.poll_interval = 1s;
}

// ---- before ----------------------------------------------------------------------------------------------------

void stage::hold() {
    const auto out = contend(plain_, 0ms);
    if (out.how != ending::owned) throw std::runtime_error("no lock to hold");
    held_.emplace(where, std::move(mine), plain_.now());
    mine = {};
}

void stage::release_held() {
    silent nobody;
    core::contender c(plain_, where, opts, plain_, nobody, seen_);
    const auto error = core::run_to_end(held_->release(c));
    held_.reset();
    const bool lost = error == fslock::errc::lost || error == std::errc::bad_message;  // half overwritten
    if (error && !(broken_ && lost)) throw std::system_error(error, "the other owner");
}

void stage::put(const std::string& path, const std::string& text, std::chrono::seconds age) {
    support::write_file(path, text);
    support::age_file(path, age);
    crafted_[path] = text;
}

void stage::put_dead(const std::string& path, bool guarded) {
    auto r = core::own_record(plain_, opts, guarded ? witness_kind::ofd : witness_kind::none, 0);
    r.pid = 999'999'999;  // beyond what any kernel gives out
    put(path, core::format(r), 1h);
}

void stage::replace_by_copy() {
    const auto copy = dir / "copy";
    support::write_file(copy, support::read_file(where.path()));
    std::filesystem::rename(copy, where.path());
}

core::contend_outcome stage::contend(faulty_world& w, std::optional<std::chrono::milliseconds> limit) {
    silent nobody;
    core::contender c(w, where, opts, w, nobody, seen_);
    if (limit) c.deadline = w.now() + *limit;
    const auto out = core::run_to_end(core::contend(c, false));
    mine = std::move(c.mine);
    return out;
}

core::break_outcome stage::break_held(faulty_world& w) {
    silent nobody;
    core::contender c(w, where, opts, w, nobody, seen_);
    broken_ = true;
    return core::run_to_end(core::break_record(c, held_->rec().writer_epoch));
}

void stage::own(faulty_world& w) {
    const auto out = contend(w, 0ms);
    if (out.how != ending::owned) throw std::runtime_error("no lock to own");
    owner.emplace(where, std::move(mine), w.now());
    mine = {};
}

// ---- afterwards ------------------------------------------------------------------------------------------------

std::string stage::look_at(const core::contend_outcome& out, faulty_world& w) {
    w.heal();
    switch (out.how) {
        case ending::owned: {
            if (held_) return "two owners";
            core::holder h(where, std::move(mine), w.now());
            return look_at_owner(h, w);
        }
        case ending::failed:
            if (!out.error) return "it failed without a cause";
            if (!w.codes().contains(out.error.value()) && out.error != fslock::errc::not_a_lock_file &&
                out.error != std::error_code(EBUSY, std::system_category()))
                return "another cause: " + out.error.message();
            break;
        case ending::timed_out: break;
        case ending::cancelled: return "cancelled by nobody";
    }
    if (mine.ready()) return "a prepared record is kept";
    return {};
}

std::string stage::look_at_owner(core::holder& h, faulty_world& w) {
    w.heal();
    const auto there = read_plainly(where.path());
    if (there.state != core::reading::seen || there.what.value.writer_epoch != h.rec().writer_epoch)
        return "owned, but its record is not there";
    if (there.what.value.guard != h.rec().guard) return "the record says something else of its witness";
    if (const auto out = core::run_to_end(h.beat(w)); out.now != core::standing::ours)
        return "does not beat: " + out.error.message();
    if (const auto out = core::run_to_end(h.verify(w)); out.now != core::standing::ours)
        return "does not verify: " + out.error.message();
    if (h.guarded() && witness_of(where.path(), h.rec().guard) != lock_state::held) return "owned without its witness";
    const auto stamp = core::epoch_stamp(h.rec().writer_epoch);
    if (!os::this_world().knows_epoch(stamp)) return "owned under an epoch that is not known";
    silent nobody;
    core::contender c(w, where, opts, w, nobody, seen_);
    const auto error = core::run_to_end(h.release(c));
    if (error) return "cannot be released: " + error.message();
    if (std::filesystem::exists(where.path())) return "released, but its record is there";
    if (os::this_world().knows_epoch(stamp)) return "released, but its epoch is known";
    return {};
}

/// What may be left: what was there before, and what we were kept from removing.
std::string stage::left_behind(faulty_world& w) const {
    for (const auto& name : dir.names()) {
        const auto path = (dir / name).native();
        if (w.kept_from_removing(path) || (broken_ && path == where.path())) continue;
        const auto crafted = crafted_.find(path);
        if (crafted != crafted_.end() && support::read_file(path) == crafted->second) continue;
        return (is_temp(path) ? std::string("a temp") : name) + " is left behind";
    }
    return {};
}

std::string stage::look_around(faulty_world& w) {
    w.heal();
    if (held_) release_held();
    owner.reset();
    if (w.remembers_epochs()) return "an epoch is not forgotten";
    if (open_descriptors() != descriptors) return "a descriptor is left open";
    if (w.failed() == 1 && is_orphan(where.path())) return "a record that nobody owns looks alive";
    const bool free = !std::filesystem::exists(where.path());
    if (auto left = left_behind(w); !left.empty()) return left;
    const bool by_witness = read_plainly(where.path()).what.value.guard != witness_kind::none && !where.shared() &&
                            !std::filesystem::exists(where.token_path());
    faulty_world later;
    const auto began = later.now();
    const auto out = contend(later, longest_grace);
    if (out.how != ending::owned)
        return "the next one does not get the lock" + (out.error ? ": " + out.error.message() : std::string());
    const bool at_once = later.now() - began < 1s;
    if (free && !at_once) return "a free lock is not to be had at once";
    if (by_witness && !at_once) return "a witness that is free does not prove death at once";
    core::holder h(where, std::move(mine), later.now());
    if (auto wrong = look_at_owner(h, later); !wrong.empty()) return "the next one: " + wrong;
    for (const auto& name : dir.names())
        if (!is_temp(dir / name) && !w.kept_from_removing(dir / name) && dir / name != where.token_path())
            return name + " is there in the end";
    return {};
}

}  // namespace faults
