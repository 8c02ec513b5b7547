// Removal: how a file of the protocol that was judged goes away, and no other with it. Records and tokens alike.
#pragma once

#include "contender.hpp"
#include "examine.hpp"

namespace fslock::core {

enum class reclaiming : std::uint8_t {
    clear,      ///< Between two steps: nothing is in the way.
    removed,    ///< The judged file is gone; the name is free for whoever claims it first.
    changed,    ///< Something else is there by now; nothing was removed.
    busy,       ///< Somebody else is at the removal, or the witness came back: look again at once.
    blocked,    ///< Somebody else holds the token.
    cancelled,  ///< The attempt was cancelled on the way; nothing of ours is left.
    failed      ///< `error` says why.
};

struct reclaim_outcome {
    reclaiming state = reclaiming::changed;
    std::error_code error;
    record token_holder;  ///< for `blocked`, as far as it could be read
    std::string epoch;    ///< of what stands in the place of a record that was to be removed by order, if something does
};

[[nodiscard]] reclaim_outcome ended(reclaiming state);
[[nodiscard]] reclaim_outcome failure(std::error_code error);
/// "It is not there any more" is a change, a passing fault is a reason to look again; all else is final.
[[nodiscard]] reclaim_outcome could_not(std::error_code error);

/// The removal lock of a judged file. Without it (another user's file), the token alone has to do.
struct removal_lock {
    os::file file;
    os::witness_kind kind = os::witness_kind::none;
    bool ours = false;
    std::error_code denied;  ///< why the file could not be opened for writing, as far as that is no failure

    [[nodiscard]] const os::file* held() const noexcept { return ours ? &file : nullptr; }
};

/// Opens the judged file at `path` for writing and takes its removal lock: while we have it, no other reclaimer is
/// between its check and its removal. `clear` also when there is no such lock to be had; `busy` when another has it.
/// Give it back in every case.
///
/// REQUIRES: a local filesystem.
[[nodiscard]] task<reclaim_outcome> take_removal(contender& c, const std::string& path, const finding& judged,
                                                 removal_lock& lock);
[[nodiscard]] task<std::error_code> give_back(contender& c, removal_lock& lock);

/// Removes what is at `path` by moving it aside first, so that what is removed is what was compared. A wrong file is
/// put back, unless somebody has the name by then. `own` is a file of ours in the same directory.
[[nodiscard]] task<reclaim_outcome> move_aside(contender& c, const std::string& path, const evidence& judged,
                                               const prepared& own);

}  // namespace fslock::core
