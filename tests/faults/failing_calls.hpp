// System calls of this program that fail: its executable stands before the C library, so what the library under test
// calls comes here first.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace faults::calls {

struct plan {
    unsigned at = 0;  ///< the call that fails, from 1 on; 0: none
    int code = 0;     ///< 0: what is plausible first for that call
    bool for_ever = false;  ///< and all later calls of its kind
    std::string_view only;  ///< a literal: no other calls count; empty: all do
};

/// Calls of all threads count from now on.
void arm(const plan& p);
/// From now on nothing fails, and nothing counts.
void disarm();

/// Between the last `arm` and `disarm`.
[[nodiscard]] unsigned counted();
[[nodiscard]] unsigned failed();
/// The name of the call that failed first, or empty.
[[nodiscard]] std::string first_failed();
[[nodiscard]] std::set<int> codes();

}  // namespace faults::calls
