// How a contender waits: for its turn, its owner's end, the next look.
#pragma once

#include "reports.hpp"

namespace fslock::core {

inline constexpr std::chrono::microseconds first_busy_backoff{50};

/// How long a process that gives a lock back and wants it again leaves it to those who wait in other processes. They
/// are woken by the kernel, in about 50 microseconds on an idle machine.
inline constexpr milliseconds hand_over_pause{1};

/// One wait from its first look to its end.
struct wait_state {
    told said;
    unsigned blocked = 0;
    std::chrono::microseconds busy_backoff = first_busy_backoff;
    /// Something happened to the record, and its owner seems to live: the delay before the next look.
    std::optional<std::chrono::microseconds> stir_backoff;
    int absences = 0;          ///< in a row
    bool retry_once = false;   ///< one attempt past the deadline is owed
    std::int64_t floor = 0;    ///< our epoch must be greater than those of the owners before us
    std::optional<steady> watched_since;
    int owners_seen = 0;       ///< since then
    bool stayed_away = false;
    bool found_free = false;   ///< by one who stayed away
};

[[nodiscard]] bool past_deadline(const contender& c);
[[nodiscard]] steady::duration next_poll(contender& c);

// Each says whether to go on.
/// Until `then`, or the deadline.
[[nodiscard]] task<bool> pause(contender& c, steady then);
/// For an owner who lives, or may live: until something happens to the record, or the next look is due. Among many,
/// away from the record at first.
[[nodiscard]] task<bool> wait_for_turn(contender& c, wait_state& s, finding& f);
/// Somebody is at this very record at this moment: very soon again.
[[nodiscard]] task<bool> look_again_soon(contender& c, wait_state& s);
/// Our process had the lock a moment ago, and others were waiting: until one of them has it, or they had their time.
[[nodiscard]] task<bool> leave_it_to_others(contender& c);

/// What the wait of a new owner has shown of how many contend.
void note_crowd(contender& c, const wait_state& s);

}  // namespace fslock::core
