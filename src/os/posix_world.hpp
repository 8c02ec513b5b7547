// The world of this process: system calls, made at once.
#pragma once

#include "world.hpp"

namespace fslock::os {

/// Never destroyed. Thread-safe.
[[nodiscard]] world& this_world();

/// Grows in every child of a fork: what was made under another number belongs to the parent.
[[nodiscard]] unsigned fork_generation() noexcept;

}  // namespace fslock::os
