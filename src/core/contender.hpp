// What one attempt to get a lock carries with it from step to step.
#pragma once

#include <optional>
#include <string>

#include "claim.hpp"
#include "crowd.hpp"
#include "examine.hpp"
#include "judge.hpp"
#include "place.hpp"

namespace fslock::core {

enum class wake : std::uint8_t {
    due,       ///< The time is up.
    event,     ///< Something happened to the record.
    cancelled  ///< Nobody wants the result any more: clean up and end.
};

enum class watching : std::uint8_t {
    never,  ///< Nobody will tell: poll.
    anew,   ///< From now on; what happened before has to be looked for.
    still   ///< As before.
};

/// Where a protocol step waits. The only place at which a real acquisition suspends.
class sleeper {
 public:
    /// Wakes at `until`, or when the attempt is cancelled; then every later call returns at once.
    virtual os::call<wake> sleep(steady until) = 0;
    /// The same, and also when something happens, or has happened since the last call, to what is watched.
    virtual os::call<wake> wait_for_change(steady until) = 0;

    /// Watches the record `seen` at `path` instead of another one. An error says why that cannot be.
    virtual os::result<watching> watch_record(const std::string& path, const os::file_facts& seen) = 0;
    /// Watches for the end of process `pid` instead of another one.
    virtual os::result<watching> watch_process(int pid) = 0;

 protected:
    ~sleeper() = default;
};

/// A sleeper whom nobody tells anything.
class deaf_sleeper : public sleeper {
 public:
    os::call<wake> wait_for_change(steady until) override { return sleep(until); }
    os::result<watching> watch_record(const std::string&, const os::file_facts&) override { return watching::never; }
    os::result<watching> watch_process(int) override { return watching::never; }

 protected:
    ~deaf_sleeper() = default;
};

/// Who is told what happens.
class reporter {
 public:
    virtual void report(event e) = 0;

 protected:
    ~reporter() = default;
};

/// What this process has seen at one path. Outlives single attempts, so that short waits add up.
struct sightings {
    observation lock;
    observation token;
    std::optional<steady> token_busy_since;  ///< since when one and the same token, `busy_token`, is in the way
    std::string busy_token;
    std::optional<steady> blocked_reported;
    std::uint64_t blocked_suppressed = 0;
    std::optional<steady> yield_until;  ///< others wait: leave the lock to them until then
    core::crowd crowd;
};

struct contender {
    contender(os::world& w, const place& p, const options& o, core::sleeper& s, core::reporter& r, sightings& known)
        : world(w), where(p), opts(o), sleeper(s), reporter(r), seen(known) {}

    os::world& world;
    const place& where;
    const options& opts;
    core::sleeper& sleeper;
    core::reporter& reporter;
    sightings& seen;
    prepared mine;                   ///< our record, for as long as it is not published
    finding looked_at;               ///< the last look; closing its file may be slow, and is for later
    std::optional<steady> deadline;  ///< absent: wait for as long as it takes
};

}  // namespace fslock::core
