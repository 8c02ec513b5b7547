// Reclaim: remove the record of an owner who is proved dead, and nothing else.
#pragma once

#include "contender.hpp"
#include "examine.hpp"

namespace fslock::core {

enum class reclaiming : std::uint8_t {
    clear,      ///< Between two steps: nothing is in the way.
    removed,    ///< The dead record is gone; the name is free for whoever claims it first.
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
};

/// REQUIRES: `dead` is what `examine` found at the path of `c`, with the verdict dead.
[[nodiscard]] task<reclaim_outcome> reclaim(contender& c, const finding& dead);

/// How long a claimed token must stand before it counts: long enough for whoever judged the token before it to have
/// acted. On a local filesystem only after a takeover.
[[nodiscard]] milliseconds settle_time(os::fs_class filesystem) noexcept;

/// A token on which removal without a witness rests (step 2 of reclaim). Also used for a release whose record may
/// have been judged dead meanwhile.
struct token {
    prepared held;
    bool ours = false;
};

/// `clear`: the token is ours, or does not matter because the removal lock is. Drop it in every case.
[[nodiscard]] task<reclaim_outcome> take_token(contender& c, token& t, bool removal_is_ours);
[[nodiscard]] task<std::error_code> drop_token(contender& c, token& t);

}  // namespace fslock::core
