// Contend: claim, else examine, judge, and reclaim or wait, until the lock is ours or it is no use.
#pragma once

#include "contender.hpp"

namespace fslock::core {

enum class ending : std::uint8_t {
    owned,      ///< `contender::mine` is the record of the new owner.
    timed_out,  ///< The deadline passed; nothing of ours is left.
    cancelled,  ///< The same, because the attempt was cancelled.
    failed      ///< The same, because of `error`.
};

struct contend_outcome {
    ending how = ending::failed;
    std::error_code error;
};

/// `claimed` says that a claim was just tried in vain. A deadline in the past means one attempt, and one more after
/// a reclaim or when the owner went away under our eyes.
[[nodiscard]] task<contend_outcome> contend(contender& c, bool claimed);

/// The delay before the next try when somebody else holds the token of a dead owner: 250 ms, doubling to 5 s.
[[nodiscard]] milliseconds blocked_backoff(unsigned blocked_before, milliseconds poll_interval) noexcept;

}  // namespace fslock::core
