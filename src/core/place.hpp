// Where a lock is: its directory, what is known of that, and the names beside it.
#pragma once

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "../os/world.hpp"

namespace fslock::core {

/// How a prepared record can become visible in a directory, from the best to the last resort.
enum class publishing : std::uint8_t {
    unnamed,     ///< a file without a name, then `linkat`
    linked,      ///< a named temp, then `linkat`
    renamed,     ///< a named temp, then `renameat2(RENAME_NOREPLACE)`
    created      ///< created in place and then filled
};

/// A directory with locks in it. Shared by all locks there; what is learned once is kept.
struct directory {
    directory(std::string p, const os::directory_facts& f) : path(std::move(p)), facts(f) {}

    const std::string path;  ///< absolute, without a trailing slash unless it is the root
    const os::directory_facts facts;
    mutable std::atomic<publishing> method{publishing::unnamed};
    mutable std::atomic<bool> links_work{false};  ///< a hard link was made here

    [[nodiscard]] bool shared() const noexcept { return facts.kind == os::fs_class::shared; }
    /// One and the same for all directories of a filesystem.
    [[nodiscard]] std::string lane() const { return std::to_string(facts.file.device); }
};

/// A lock path, checked.
struct lock_name {
    std::string full;            ///< absolute
    std::size_t name_at = 0;     ///< where its last component begins

    [[nodiscard]] std::string_view name() const noexcept {
        return std::string_view(full).substr(name_at);
    }
    /// The rest, without the slash unless that is all there is.
    [[nodiscard]] std::string_view directory() const noexcept {
        return std::string_view(full).substr(0, name_at > 1 ? name_at - 1 : 1);
    }
};

/// Splits `given`, made absolute, and checks what needs no look at the disk.
///
/// Errors: ENOENT for an empty path, EINVAL for an embedded NUL, EISDIR for a trailing slash, `.` or `..`,
/// ENAMETOOLONG for a name that leaves no room for its token, `errc::reserved_name`, and what finding the current
/// directory says.
[[nodiscard]] std::error_code split(const std::filesystem::path& given, lock_name& into);

/// `.X.reclaim` or `.X.tmp.<digits>.<digits>.<digits>`, in any case: names that belong to the protocol.
[[nodiscard]] bool is_reserved(std::string_view name) noexcept;

/// What a file beside a lock is for, by its name.
enum class side : std::uint8_t {
    nothing,  ///< It has no name of the protocol.
    token,    ///< `.N.reclaim`
    temp      ///< `.N.tmp.<pid>.<ns>.<number>`
};

struct side_name {
    side what = side::nothing;
    std::string lock;  ///< N
    int maker = 0;     ///< of a temp: the pid of who made it, in its own PID namespace
};

/// Exactly as the protocol writes them, unlike what is reserved. `.nfs*` is nothing: what a client of NFS makes of a
/// file that is open and was removed.
[[nodiscard]] side_name side_name_of(std::string_view name);

/// One lock: its name, its directory, and what stands beside it.
struct place {
    std::shared_ptr<const core::directory> where;
    lock_name lock;

    [[nodiscard]] const std::string& path() const noexcept { return lock.full; }
    [[nodiscard]] bool shared() const noexcept { return where->shared(); }
    [[nodiscard]] os::fs_class kind() const noexcept { return where->facts.kind; }
    [[nodiscard]] std::string token_path() const;
    /// What the names of its records in preparation begin with: `.N.tmp.`
    [[nodiscard]] std::string temp_prefix() const;
    /// A name for a record in preparation or removal: `.N.tmp.<pid>.<nanoseconds>.<chance>`.
    [[nodiscard]] std::string private_path(os::world& w) const;
};

}  // namespace fslock::core
