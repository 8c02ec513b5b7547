// Explores the schedules of a simulated site: who makes the next step, who dies, who stands still.
#pragma once

#include <cstdint>
#include <vector>

#include "support/actors.hpp"

namespace schedules {

using support::site;

/// What a scenario allows to happen. Everything is bounded, so that there is an end of schedules.
struct scenario {
    const char* name;
    void (*set_up)(site&);
    int deaths = 1;
    /// How often somebody stands still. Without time: two hours pass, at any point, for all who do not make a step.
    /// In time: one who sleeps does not wake up before the others have nothing more to do, or any time before.
    int stops = 0;
    int lost_replies = 0;  ///< of links that were made: EIO, or EEXIST as if somebody else had been there
    /// How often a process that could go on is interrupted by another; all that is possible if negative.
    int preemptions = -1;
    /// Whether sleeping takes its time. Then nobody is awake for as long as it takes to settle a token: what is promised
    /// to those who need longer is another matter. Without, a sleeper wakes whenever it likes.
    bool timed = false;
    /// Looks at the lock's name fail as well; they count as lost replies.
    bool failing_looks = false;
};

struct totals {
    std::size_t states = 0;
    std::size_t ends = 0;
    std::size_t won = 0;
    bool failed = false;
};

/// Explores all of it and prints how much that was. What breaks a promise is an error of the test, with its schedule.
totals explore(const scenario& s);

}  // namespace schedules
