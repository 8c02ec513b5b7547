// Examine: one look at a record, with all that its judgement needs.
#pragma once

#include <string>

#include "claim.hpp"
#include "judge.hpp"
#include "place.hpp"
#include "read_record.hpp"

namespace fslock::core {

struct finding {
    reading state = reading::failed;
    std::error_code error;
    verdict judged;
    core::evidence evidence;
    /// The judged file. Open on a local filesystem, where it keeps the inode number from being used again; on a
    /// shared one no descriptor is kept.
    os::file file;
};

/// Looks at `path`, the lock's or the token's, and judges what is there. `seen` is what this process saw of it
/// before, and is brought up to date. `mine` is a prepared file on the same filesystem, whose clock it lends.
[[nodiscard]] task<finding> examine(os::world& w, const place& where, const std::string& path, subject what,
                                    const options& o, observation& seen, const prepared& mine);

/// Reads and judges `f` once more through its descriptor, without looking at its name. `removal` is the descriptor
/// that holds the removal lock of that file for us, or null. Unknown when the file is not the same record any more.
///
/// REQUIRES: a local filesystem.
[[nodiscard]] task<verdict> judge_again(os::world& w, const place& where, const finding& f, const options& o,
                                        observation& seen, const prepared& mine, const os::file* removal);

}  // namespace fslock::core
