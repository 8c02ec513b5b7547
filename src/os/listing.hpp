// What is in a directory.
#pragma once

#include <string>
#include <vector>

#include "world.hpp"

namespace fslock::os {

struct directory_entry {
    std::string name;
    file_kind kind = file_kind::other;
};

struct listing {
    file_facts directory;                  ///< of the directory itself
    std::vector<directory_entry> entries;  ///< by name; without `.` and `..`
    bool whole = true;                     ///< false: there are more than were asked for
};

/// Whether a symbolic link at the end of the path is followed. Those in the directory never are.
enum class last_link : std::uint8_t { follow, refuse };

/// At most `most` entries of `directory`. ELOOP or ENOTDIR for a symbolic link that is refused.
[[nodiscard]] result<listing> list_directory(const std::string& directory, std::size_t most, last_link what);

}  // namespace fslock::os
