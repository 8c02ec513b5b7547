// Which filesystems have one kernel behind them.
#pragma once

#include "world.hpp"

namespace fslock::os {

/// `path` is any file on the filesystem. What is not known to be local is shared.
[[nodiscard]] result<fs_class> filesystem_class(const char* path);

}  // namespace fslock::os
