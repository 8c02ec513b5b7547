// Reclaim: remove the record of an owner who is proved dead, or of one that is named, and nothing else.
#pragma once

#include "token.hpp"

namespace fslock::core {

/// Why a record may be removed.
enum class ground : std::uint8_t {
    death,  ///< Its owner is dead, and still is when it is removed.
    order   ///< Somebody wants it, whoever lives: `fslock::break_lock`.
};

/// REQUIRES: `found` is what `examine` found at the path of `c`, a record; with the verdict dead unless by order.
///
/// By order the owner may be about to give the lock back itself, between its last look and its removal. Whatever comes
/// after its record would be what it removes: so this waits until that cannot be (docs/protocol.md, "Break"). Fails
/// with what keeps us from writing into the record, and with EOPNOTSUPP where its witness is of another system.
[[nodiscard]] task<reclaim_outcome> reclaim(contender& c, const finding& found, ground why = ground::death);

}  // namespace fslock::core
