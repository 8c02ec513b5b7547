#pragma once

#include <string_view>

namespace fslock::core {

[[nodiscard]] bool is_utf8(std::string_view text) noexcept;

}  // namespace fslock::core
