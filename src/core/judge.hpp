// Is the owner of a record dead? One pure function.
#pragma once

#include <chrono>
#include <optional>

#include "../os/world.hpp"
#include "fslock/event.hpp"
#include "fslock/options.hpp"
#include "record.hpp"

namespace fslock::core {

using milliseconds = std::chrono::milliseconds;
using steady = os::world::steady;

/// What this process itself has seen of one record, over all its looks at it.
struct observation {
    std::uint64_t inode = 0;
    std::string epoch;
    std::int64_t modified_ns = 0;
    std::int64_t heartbeat_at_ms = 0;
    steady silent_since{};               ///< since when it was watched without a change and without a gap
    std::optional<steady> last_change;   ///< when a change was last seen
    steady last_look{};
};

/// Notes one look at a record in `o`. A change is a beat: another mtime, heartbeat or, under the same epoch, inode
/// (a writer that beats by renaming). A gap starts the silence anew, since we may have been stopped together with the
/// owner: more than three intervals, and more than our own waits account for. Another epoch is another owner, of whom
/// nothing is known yet.
void observe(observation& o, const record& r, const os::file_facts& file, steady now, const options& limits);

/// What is to be judged: `.N.reclaim` is held for moments, `N` for as long as it takes.
enum class subject : std::uint8_t { lock, token };

/// Everything a verdict may rest on.
struct evidence {
    subject what = subject::lock;
    content kind = content::foreign;
    record rec;
    os::file_facts file;
    os::fs_class filesystem = os::fs_class::shared;
    os::lock_state witness = os::lock_state::unknown;  ///< byte 0
    os::lock_state removal = os::lock_state::unknown;  ///< byte 1
    os::process_facts process;                         ///< the recorded pid, looked up in our PID namespace
    bool epoch_is_ours = false;                        ///< this process holds a lock under that epoch
    std::optional<std::int64_t> filesystem_now_ns;     ///< absent when it could not be asked
    observation seen;
    steady now{};
};

enum class fate : std::uint8_t {
    alive,            ///< The owner lives, or must be taken to live.
    dead,             ///< The record may be removed.
    being_reclaimed,  ///< The owner is dead and somebody else is removing the record.
    unknown,          ///< Neither can be said yet.
    not_a_lock        ///< Nothing that fslock may touch.
};

struct verdict {
    fate what = fate::unknown;
    fslock::proof proof = fslock::proof::none;
    milliseconds silence{0};                      ///< how long the record has been silent
    std::optional<milliseconds> look_again_after;  ///< when silence alone could change the verdict
};

/// The table, first row that applies:
///
///   1  local filesystem, record has a witness    held: alive. Free: dead, or being_reclaimed if byte 1 is held.
///   2  boot_id and pid_ns recorded, equal ours   the process rule, at once; unknown: row 5. Of this very process,
///                                                which does not know it: dead after `stale_after` of silence
///   3  no pid_ns; boot id equal, or absent and   process alive: alive; gone: dead after `stale_after` of silence;
///      hostname equal                            no start time: alive while its pid is, until row 5 says dead
///   4  local filesystem, another boot id         dead after `stale_after` of silence
///   5  any other record                          dead after `foreign_stale_after`, of which `foreign_confirm` seen
///   6  malformed                                 dead after `malformed_grace` (token: 60 s) of silence, witness free
///   7  anything else                             not_a_lock
///
/// Silence is the age of the record's mtime by the clock of its filesystem, or the time for which we watched it
/// without a change if that is longer (an mtime may lie in the future). No limit is below three of the owner's
/// intervals, and a beat that we saw vetoes rows 2 to 6 for as long. A token without a witness is dead after ten
/// minutes of silence, whatever else.
[[nodiscard]] verdict judge(const evidence& e, const os::identity& self, const options& limits);

/// Whether row 1 applies. A witness of a kind that this system cannot ask for counts as absent.
[[nodiscard]] bool witness_decides(const evidence& e) noexcept;
/// Whether rows 2 or 3 would ask for the process, so that nothing is asked in vain.
[[nodiscard]] bool needs_process(const record& r, const os::identity& self) noexcept;
/// The pace at which the owner promises to beat; 5 s, the pace of the first implementation, where it does not say.
[[nodiscard]] milliseconds interval_of(const record& r) noexcept;

}  // namespace fslock::core
