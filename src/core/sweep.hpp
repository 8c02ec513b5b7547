// Sweep: remove a token or a temp that somebody left behind, if that is proved, and nothing else.
#pragma once

#include <string>

#include "token.hpp"

namespace fslock::core {

enum class sweeping : std::uint8_t {
    removed,  ///< It is gone, by us; in a dry run: it would be.
    kept,     ///< Somebody needs it, or may need it.
    gone,     ///< It was not there any more, or is another one by now.
    failed    ///< `error` says why.
};

struct sweep_outcome {
    sweeping state = sweeping::kept;
    std::error_code error;
    verdict judged;
    record writer;  ///< as far as the file says
};

/// How to go about it.
struct sweep_rules {
    milliseconds temp_grace{0};  ///< how old a temp must be where nothing but its age speaks against its maker
    bool dry_run = false;
};

/// Judges the token of the lock of `c`, and removes it as a reclaim removes a dead token.
[[nodiscard]] task<sweep_outcome> sweep_token(contender& c, const sweep_rules& rules);

/// Judges the temp at `path` beside the lock of `c`. `maker` is the pid in its name.
///
/// Dead is what a kernel lock or a process of our PID namespace proves dead; what only silence speaks against, or is
/// damaged, has to be older than the grace as well, since nobody beats a temp. It is kept while there is a process
/// `maker` here: what it moved aside may be somebody else's record, which it may be about to put back. A maker that is
/// wrongly taken for dead finds its temp gone, and prepares another.
[[nodiscard]] task<sweep_outcome> sweep_temp(contender& c, const std::string& path, int maker,
                                             const sweep_rules& rules);

}  // namespace fslock::core
