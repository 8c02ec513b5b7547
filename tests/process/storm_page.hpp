// What the processes of a storm see together: who is inside, who was condemned, and what was counted.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <filesystem>

namespace storm {

inline constexpr std::size_t workers = 16;
inline constexpr std::size_t most_locks = 40;

/// A program's name in the storm: a worker's number, and how many programs have had it so far. Pids would not do: in
/// every PID namespace there is a pid 1.
struct name {
    std::uint32_t worker = 0;
    std::uint32_t life = 0;
    [[nodiscard]] std::uint64_t as_number() const { return std::uint64_t{worker + 1} << 32 | life; }
};

struct page {
    std::atomic<bool> over;
    std::atomic<std::uint32_t> locks;
    std::atomic<bool> gentle;  ///< nobody ends by himself or becomes another program

    /// By lock: the name of who works under it, or 0.
    std::array<std::atomic<std::uint64_t>, most_locks> inside;
    /// By worker: the pid to signal, the life it is in, and the last life that is condemned: it ends, and whoever comes
    /// after it may find what it left. All lives are while the killer is at work.
    std::array<std::atomic<pid_t>, workers> pids;
    std::array<std::atomic<std::uint32_t>, workers> lives;
    std::array<std::atomic<std::uint32_t>, workers> condemned;

    std::atomic<std::uint64_t> acquired;
    std::atomic<std::uint64_t> interrupted;       ///< signals that were handled in the middle of something
    std::atomic<std::uint64_t> overlaps_in_page;  ///< two inside at once, both of them alive
    std::atomic<std::uint64_t> overlaps_on_disk;  ///< somebody's marker stood there, and he lives
    std::atomic<std::uint64_t> lost;              ///< a living owner whose record was not there any more
    std::atomic<std::uint64_t> stuck;             ///< waited for a minute in vain
    std::atomic<std::uint64_t> errors;
    std::atomic<int> last_error;
    std::atomic<std::uint64_t> inherited;  ///< a forked child that took the lock for its own
    std::atomic<std::uint64_t> exits, execs, forks;

    [[nodiscard]] bool is_condemned(std::uint64_t whose) const {
        return condemned[static_cast<std::size_t>(whose >> 32) - 1] >= static_cast<std::uint32_t>(whose);
    }
};

/// Maps the page that is kept in the file `at`, which has to be there. Never unmapped.
page& page_in(const std::filesystem::path& at);

/// How a program of the storm was started.
struct part {
    std::filesystem::path locks;  ///< directory of the locks
    std::filesystem::path page;   ///< file of the page
    std::uint32_t worker = 0;
    std::uint32_t seed = 0;
};

/// Takes turns under the locks until the storm is over, and ends the process in one way or the other; `again` becomes
/// a new program with the same part.
[[noreturn]] void take_part(const part& mine, void (*again)(const part&));

}  // namespace storm
