#pragma once

#include <string_view>

namespace fslock::core {

/// By RFC 3629: no overlong forms, no surrogates, nothing beyond U+10FFFF. Not that of simdjson, which must not be
/// called while a program ends.
[[nodiscard]] bool is_utf8(std::string_view text) noexcept;

}  // namespace fslock::core
