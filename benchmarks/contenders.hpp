// What one process of a match does.
#pragma once

#include "arena.hpp"

namespace bench {

/// Contends with all coroutines or threads of a process, of which `first` is the first, until the match is
/// over.
void contend(arena& a, const workload& w, const peer& who, const std::vector<std::filesystem::path>& paths,
             seat first);

}  // namespace bench
