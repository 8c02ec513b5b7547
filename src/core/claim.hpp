// Claim: make a record visible at a name that nobody has.
#pragma once

#include <optional>
#include <string>

#include "../os/world.hpp"
#include "fslock/options.hpp"
#include "judge.hpp"
#include "place.hpp"
#include "record.hpp"
#include "task.hpp"

namespace fslock::core {

/// A record that is ready to become visible, or has become so. Kept across attempts.
struct prepared {
    os::file file;
    std::string temp;  ///< its present name when that is not the lock's; empty: it has none
    record rec;
    os::file_facts facts;
    publishing how = publishing::unnamed;
    /// Where it may be visible, or come back, without our knowing, since when: an answer was lost.
    struct doubt {
        std::string at;
        steady since;
    };
    std::optional<doubt> in_doubt;
    /// It may have been visible for long before it was ours. Then others may have judged it meanwhile.
    bool was_silent = false;

    [[nodiscard]] bool ready() const noexcept { return static_cast<bool>(file); }
};

/// The record that this process would write now under a fresh epoch, greater than `floor`.
[[nodiscard]] record own_record(os::world& w, const options& o, os::witness_kind guard, std::int64_t floor);

/// One attempt to make a record visible at `target`, the lock's path or its token's. Prepares `p` if it is not.
///
/// Outcomes: no error, and `p` is the owner's record; EEXIST, somebody else has the name; otherwise what went wrong.
/// Never replaces or changes an existing file.
[[nodiscard]] task<std::error_code> claim(os::world& w, const place& where, const std::string& target,
                                          const options& o, prepared& p, std::int64_t floor);

/// Removes what `p` has on disk, and closes it. For a record that was not published, or not for good. What may come back
/// without our knowing is made a damaged record, which others remove.
[[nodiscard]] task<std::error_code> discard(os::world& w, const place& where, prepared& p);

}  // namespace fslock::core
