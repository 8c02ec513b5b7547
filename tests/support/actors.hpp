// Who takes part in the simulated world: contenders of ours, peers that run the first implementation, people who
// remove a file by hand. Together they make a site, at which the promises can be checked.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "core/breaking.hpp"
#include "core/contend.hpp"
#include "core/holder.hpp"
#include "core/record.hpp"
#include "core/sweep.hpp"
#include "simulation.hpp"

namespace support {

namespace core = fslock::core;

inline const std::string lock_path = "/d/x";
inline const std::string token_path = "/d/.x.reclaim";

enum class part { contending, owning, ended };

/// A process with something to do at the lock.
struct actor final : fslock::core::reporter {
    using behaviour = core::task<int> (*)(actor&);

    actor(sim_disk& d, sim_host& host, int pid) : disk(d), process(d, host, pid) {}
    void start(behaviour what) {
        run = what(*this);
        run.resume();
    }
    void report(fslock::event) override {}
    void die() {
        process.die();
        run = {};
    }

    /// Whether it believes to own the lock, and rightly. On a shared filesystem that ends for good when it has not
    /// beaten for so long that somebody may be taking it over; it finds out with one of its next looks.
    [[nodiscard]] bool owns() const { return now == part::owning && !process.dead() && !doubtful && !broken && !overdue(); }
    [[nodiscard]] bool overdue() const;
    void begin_to_own() {
        now = part::owning;
        ++won;
        beaten_ns = disk.now_ns;
        broken = false;
    }

    sim_disk& disk;
    sim_process process;
    fslock::options opts;
    core::sightings seen;
    int turns = 1;                 ///< how often it wants the lock
    int beats = 0;                 ///< in each turn; before each it sleeps for `nap`
    core::milliseconds nap{5'000};
    bool looks = true;             ///< whether it looks after its lock before it gives it back
    bool cares = true;             ///< whether its record must not be gone while it owns
    part now = part::contending;
    std::uint64_t inode = 0;       ///< of its record, while it owns
    std::string epoch;             ///< of its last record
    std::int64_t beaten_ns = 0;    ///< true time at which its last beat began, or its claim ended
    int won = 0;
    bool doubtful = false;         ///< it has been overdue while it owned
    bool lost = false;             ///< it was told so, and had not been overdue
    bool gave_up = false;
    bool broken = false;           ///< somebody has removed its record by order
    actor* victim = nullptr;       ///< whose record it is to remove by order
    std::error_code failure;
    core::task<int> run;
};

/// Gets the lock, beats under it, looks after it, gives it back; `turns` times.
core::task<int> takes_turns(actor& a);
/// The same by the rules of the first implementation: judges by host, pid and start time, has no witness, beats by
/// renaming, takes the token by creating it, and unlinks.
core::task<int> as_the_first_implementation(actor& a);
/// Writes beats into whatever stands at the lock's name, `beats` times: an owner elsewhere, of whom nothing else is
/// to be seen.
core::task<int> beats_from_elsewhere(actor& a);
/// Removes the record by hand.
core::task<int> removes_by_hand(actor& a);
/// Breaks the lock of its victim, which owns: from the moment that its record is gone, that is no owner.
core::task<int> breaks(actor& a);
/// Sweeps the token, and all temps that it sees when it begins.
core::task<int> sweeps(actor& a);

/// One world: a filesystem, hosts, and those who take part.
struct site {
    site() { hosts.emplace_back(); }
    sim_host& add_host(const std::string& name);
    actor& add(int host, int pid);
    actor& add_started(int host, int pid, actor::behaviour what);
    [[nodiscard]] bool shared() const { return disk.kind == os::fs_class::shared; }

    /// "" or which promise does not hold at this moment.
    [[nodiscard]] std::string broken() const;
    /// When nobody can step any more: "" or what is wrong. Uses the site up.
    [[nodiscard]] std::string wrong_at_the_end();

    sim_disk disk;
    std::deque<sim_host> hosts;
    std::vector<std::unique_ptr<actor>> actors;
    bool nobody_may_win = false;     ///< an owner elsewhere lives
    bool somebody_must_win = true;   ///< whoever dies not
    bool records_vanish = false;     ///< people remove them by hand
    std::string stays;               ///< content that may be left behind
    bool tokens_may_stay = false;
};

/// The record of an owner `pid` on `host` of long ago: of ours, with a witness where `guarded`, or of the first
/// implementation.
enum class writer { ours, ours_without_witness, first_implementation };
std::string record_text(int pid, const sim_host& host, writer by);

}  // namespace support
