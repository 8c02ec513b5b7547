// The world of this process: system calls, made at once.
#pragma once

#include "per_process.hpp"
#include "world.hpp"

namespace fslock::os {

/// Never destroyed. Thread-safe.
[[nodiscard]] world& this_world();

}  // namespace fslock::os
