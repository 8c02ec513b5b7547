// A lock of another language: an interpreter does it, and is told what by a pipe.
#pragma once

#include "peers.hpp"

namespace bench {

/// The peer `name` whose script is `script`, run by the first of `interpreters` that can load what it needs.
[[nodiscard]] peer scripted_peer(const std::string& name, const std::string& script,
                                 const std::vector<std::string>& interpreters);

}  // namespace bench
