// Errors of the system, by their numbers.
#pragma once

#include <cerrno>
#include <system_error>

namespace fslock::core {

[[nodiscard]] inline std::error_code system_code(int number) noexcept { return {number, std::system_category()}; }

[[nodiscard]] inline bool is(std::error_code e, int number) noexcept { return e == system_code(number); }

}  // namespace fslock::core
