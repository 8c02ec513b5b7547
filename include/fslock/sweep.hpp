// Removing what locks left behind.
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <vector>

#include "detail/asio.hpp"
#include "event.hpp"

namespace fslock {

/// A file that a sweep has looked at, or something else that it could not look at.
struct swept_file {
    swept_file() = default;

    std::filesystem::path path;
    owner_info writer;                   ///< Who wrote it, as far as it says.
    fslock::proof proof = proof::none;   ///< On what its removal rests, or what shows that its writer lives.
    std::chrono::milliseconds age{0};    ///< Since it was written, by the filesystem's clock; 0 where nobody asked.
    error_code error;                    ///< Why it was skipped; none: somebody needs it, or may need it.
};

/// How a sweep goes about. A plain value.
struct sweep_options {
    sweep_options() = default;

    /// Where to look, relative to the root, without `..`; a missing one is no error, a symbolic link is skipped. Empty:
    /// in the root itself.
    std::vector<std::filesystem::path> domains;

    /// How many levels of directories below the root, or below each domain, are looked into.
    unsigned depth = 2;

    /// How many entries of directories are looked at, in all. More are reported as skipped, with
    /// `errc::limit_reached`.
    std::size_t most_entries = 100'000;

    /// Whether to go on into directories that are other filesystems.
    bool other_filesystems = false;

    /// Removes nothing, and reports and counts what would be.
    bool dry_run = false;

    /// How old a temp must be where nothing but its age, or its damage, speaks against its maker: nobody beats a temp.
    /// At least a minute.
    std::chrono::milliseconds temp_grace{std::chrono::hours(6)};

    /// A sweep of the same root does nothing, and returns 0, when the last one of this process began less than that ago;
    /// `std::chrono::hours(24)` for once a day. Zero: never.
    std::chrono::milliseconds at_most_every{0};

    /// Told of each file that was removed, and of what was left alone and why. Called on the calling thread; an exception
    /// ends the sweep and passes through.
    std::function<void(const swept_file&)> on_removed;
    std::function<void(const swept_file&)> on_skipped;
};

/// Removes abandoned files that stand beside locks in and below `root`: the tokens of dead reclaimers and the temps of
/// dead writers (docs/protocol.md, "Files"), on any host. Returns how many that were. Blocks; safe beside everything that
/// uses the locks.
///
/// Never touches the record of a lock, nor anything that is not named and written as such a file, nor one whose writer
/// lives or may live. Symbolic links are not followed, but for `root`. A file or directory that cannot be looked at is
/// skipped.
/// Errors: those of opening `root`; `errc::bad_options` when an option is out of its range. Without an `error_code` they
/// are thrown as `system_error`.
std::size_t sweep(const std::filesystem::path& root, const sweep_options& o = sweep_options());
std::size_t sweep(const std::filesystem::path& root, const sweep_options& o, error_code& ec);
inline std::size_t sweep(const std::filesystem::path& root, error_code& ec) { return sweep(root, sweep_options(), ec); }

}  // namespace fslock
