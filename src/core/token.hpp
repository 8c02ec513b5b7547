// The token: held while a record is removed, for the sake of those who know no removal lock.
#pragma once

#include <string_view>

#include "removal.hpp"

namespace fslock::core {

/// How long a claimed token must stand before it counts: long enough for whoever judged the token before it to have
/// acted. On a local filesystem only after a takeover.
[[nodiscard]] milliseconds settle_time(os::fs_class filesystem) noexcept;

/// On the token of who breaks a lock. A release with a `flock` witness minds it.
inline constexpr std::string_view breaking_label = "breaking this lock";

/// A token on which removal without a witness rests (step 2 of reclaim). Also used for a release whose record may
/// have been judged dead meanwhile.
struct token {
    std::string label;  ///< what it says, for those who can read it
    prepared held;
    bool ours = false;
};

/// `clear`: the token is ours, or does not matter because the removal lock is. Drop it in every case.
[[nodiscard]] task<reclaim_outcome> take_token(contender& c, token& t, bool removal_is_ours);
[[nodiscard]] task<std::error_code> drop_token(contender& c, token& t);

/// Removes the token at `path` that was judged `dead`: as a dead owner's record, but for a token of its own. `own` is a
/// file of ours in the same directory.
[[nodiscard]] task<reclaim_outcome> remove_dead_token(contender& c, const std::string& path, const finding& dead,
                                                      const prepared& own);

}  // namespace fslock::core
