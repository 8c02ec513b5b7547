// The one place that deals with EINTR and errno.
#pragma once

#include <cerrno>
#include <system_error>

namespace fslock::os {

/// Calls `f` until it is not interrupted by a signal.
template <class Call>
auto retry(Call f) {
    for (;;) {
        const auto n = f();
        if (n != -1 || errno != EINTR) return n;
    }
}

[[nodiscard]] inline std::error_code last_error() { return {errno, std::system_category()}; }

/// For calls that answer -1 and errno.
template <class N>
[[nodiscard]] std::error_code outcome(N n) {
    return n == -1 ? last_error() : std::error_code();
}

}  // namespace fslock::os
