// The uses of a lock in which calls fail.
#include "fslock/error.hpp"
#include "stage.hpp"

namespace faults {
namespace {

using core::standing;

constexpr auto limit = 20s;  // a waiter looks every second

struct silent final : core::reporter {
    void report(fslock::event) override {}
};

std::string wait_for_it(stage& s, faulty_world& w) {
    const auto out = s.contend(w, limit);
    return s.look_at(out, w);
}

std::string try_once(stage& s, faulty_world& w) {
    const auto out = s.contend(w, 0ms);
    return s.look_at(out, w);
}

/// The other owner lets go while we sleep for the third time.
std::string outwait(stage& s, faulty_world& w) {
    w.wall_clock_leaps = true;
    w.on_sleep = [&](unsigned number) {
        if (number == 3 && s.is_held()) s.release_held();
    };
    return wait_for_it(s, w);
}

std::string outwait_when_told(stage& s, faulty_world& w) {
    w.tells = true;
    return outwait(s, w);
}

/// Faults of reading never mean a loss; one that says "something else is there" does.
std::string not_lost(const core::standing_outcome& out, const faulty_world& w) {
    if (out.now == standing::lost && !w.codes().contains(ELOOP)) return "a fault is taken for a loss";
    if (out.now == standing::unsure && !out.error) return "unsure without a cause";
    return {};
}

std::string beat_thrice(stage& s, faulty_world& w) {
    for (int i = 0; i < 3; ++i) {
        const auto out = core::run_to_end(s.owner->beat(w));
        if (auto wrong = not_lost(out, w); !wrong.empty()) return wrong;
    }
    return s.look_at_owner(*s.owner, w);
}

std::string verify(stage& s, faulty_world& w) {
    const auto out = core::run_to_end(s.owner->verify(w));
    if (auto wrong = not_lost(out, w); !wrong.empty()) return wrong;
    return s.look_at_owner(*s.owner, w);
}

std::string release(stage& s, faulty_world& w) {
    silent nobody;
    core::sightings seen;
    core::contender c(w, s.where, s.opts, w, nobody, seen);
    const bool guarded = s.owner->guarded();
    auto error = core::run_to_end(s.owner->release(c));
    const bool there = std::filesystem::exists(s.where.path());
    if (!error && there) return "released, but its record is there";
    w.heal();
    // Without a witness the caller has to try again: see holder::release. For how long: held_lock::try_again_after.
    auto pause = 100ms;
    for (int tries = 0; tries < 10 && error && error != fslock::errc::lost && !guarded; ++tries, pause *= 2) {
        (void)w.sleep(w.now() + pause);
        error = core::run_to_end(s.owner->release(c));
    }
    if (!guarded) {
        if (error && error != fslock::errc::lost) return "cannot be released later: " + error.message();
        if (std::filesystem::exists(s.where.path())) return "released later, but its record is there";
    }
    return {};
}

std::string release_late(stage& s, faulty_world& w) {
    w.wall_clock_leaps = true;
    (void)w.sleep(w.now() + 2 * s.opts.stale_after);
    return release(s, w);
}

/// An order to remove what somebody holds, who does nothing meanwhile.
std::string break_it(stage& s, faulty_world& w) {
    const auto out = s.break_held(w);
    const bool there = std::filesystem::exists(s.where.path());
    w.heal();
    if (out.removed && there) return "removed, but it is there";
    if (!out.removed && !out.error && there) return "not removed, without a cause";
    return {};
}

void own(stage& s) {
    faulty_world w;
    s.own(w);
}

void own_a_copy(stage& s) {
    own(s);
    s.replace_by_copy();
}

bool has_witness(const ground& g) { return g.kind == os::fs_class::local && g.witness == fslock::witness::automatic; }
bool has_none(const ground& g) { return !has_witness(g); }

constexpr scenario all_scenarios[] = {
    {"acquire a free lock", [](stage&) {}, wait_for_it},
    {"try once", [](stage&) {}, try_once},
    {"behind a killed owner", [](stage& s) { s.put_dead(s.where.path(), true); }, wait_for_it},
    {"once behind a killed owner", [](stage& s) { s.put_dead(s.where.path(), true); }, try_once},
    {"behind an owner whose process is gone", [](stage& s) { s.put_dead(s.where.path(), false); }, wait_for_it},
    {"behind a damaged record", [](stage& s) { s.put(s.where.path(), "", 1h); }, wait_for_it},
    {"behind a killed owner and a dead token",
     [](stage& s) {
         s.put_dead(s.where.path(), true);
         s.put_dead(s.where.token_path(), true);
     },
     wait_for_it},
    {"behind a process and a token that are gone",
     [](stage& s) {
         s.put_dead(s.where.path(), false);
         s.put_dead(s.where.token_path(), false);
     },
     wait_for_it},
    {"wait", [](stage& s) { s.hold(); }, outwait},
    {"wait and be told", [](stage& s) { s.hold(); }, outwait_when_told},
    {"try once a lock that is held", [](stage& s) { s.hold(); }, try_once},
    {"beat", own, beat_thrice},
    {"beat a record restored from a copy", own_a_copy, beat_thrice},
    {"verify", own, verify},
    {"release", own, release},
    {"release a copy", own_a_copy, release, has_witness},
    {"release late", own, release_late, has_none},
    {"break", [](stage& s) { s.hold(); }, break_it},
};

}  // namespace

std::span<const scenario> scenarios() noexcept { return all_scenarios; }

}  // namespace faults
