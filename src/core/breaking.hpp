// Break: remove the record of one acquisition because somebody wants it, whether its owner lives or not.
#pragma once

#include <string>

#include "reclaim.hpp"

namespace fslock::core {

struct break_outcome {
    bool removed = false;   ///< by us; without an error: the record is not there, or it is of another epoch
    std::error_code error;  ///< EBUSY: others were at its removal all the time
    record token_holder;    ///< for EBUSY, who has the token, as far as it could be read
};

/// Removes the record at the path of `c` if it is that of `epoch`, by the steps of a reclaim. Looks again while others
/// are at it, or it changes, for ten settle times.
[[nodiscard]] task<break_outcome> break_record(contender& c, std::string epoch);

}  // namespace fslock::core
