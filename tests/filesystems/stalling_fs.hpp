// What a stalling filesystem and its test share: one page of memory of two processes.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace stalling {

/// The calls that reach the filesystem. Looking a name up is `getattr` there, closing a descriptor is `flush`.
enum class call : unsigned {
    getattr,
    readdir,
    open,
    create,
    read,
    write,
    flush,
    fsync,
    utimens,
    chmod,
    link,
    rename,
    unlink,
    statfs
};

inline constexpr std::size_t calls = 14;

/// How a record can be given its name. What a filesystem cannot do it refuses, as real ones do.
enum class naming : unsigned {
    links,              ///< By a hard link.
    exclusive_renames,  ///< There are no hard links (EPERM), but renames that replace nothing.
    neither             ///< It has to be created where it belongs.
};

[[nodiscard]] constexpr std::uint32_t bit_of(call which) noexcept {
    return 1U << static_cast<unsigned>(which);
}

inline constexpr std::int64_t for_ever = std::numeric_limits<std::int64_t>::max();

struct control {
    std::atomic<bool> mounted{false};
    std::atomic<std::uint32_t> stalled{0};                    ///< bits of the calls that hang
    std::atomic<std::int64_t> passing{for_ever};              ///< how many more pass before all hang
    std::array<std::atomic<std::uint32_t>, calls> hanging{};  ///< how many hang at this moment
    std::array<std::atomic<std::uint64_t>, calls> made{};     ///< how many have arrived
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "two processes share them");

}  // namespace stalling
