// Error codes of fslock: only what the operating system cannot say.
#pragma once

#include <system_error>
#include <type_traits>

namespace fslock {

/// What the operating system has no code for. Everything else (EACCES, ENOSPC, ...) passes through unchanged. To be
/// compared with an `error_code`, or with `code()` of what was thrown: `if (ec == fslock::errc::lost)`.
enum class errc {
    lost = 1,         ///< The lock was ours and is not any more: its record was removed, replaced or taken over.
    not_owner,        ///< The record at the path belongs to somebody else; nothing was touched. Not used so far.
    not_a_lock_file,  ///< Something that fslock did not write is at the path; it was not touched.
    bad_options,      ///< An option is out of its range.
    reserved_name,    ///< The last component of the path is one that fslock uses for its own files.
    limit_reached,    ///< A sweep met more entries than it may look at.
};

/// The category of `errc`. Its messages say what happened and what to do next.
[[nodiscard]] const std::error_category& error_category() noexcept;

[[nodiscard]] inline std::error_code make_error_code(errc e) noexcept {
    return {static_cast<int>(e), error_category()};
}

}  // namespace fslock

template <>
struct std::is_error_code_enum<fslock::errc> : std::true_type {};
