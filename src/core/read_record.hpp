// Reading a record as it stands, without any judgement.
#pragma once

#include <string>

#include "../os/world.hpp"
#include "record.hpp"
#include "task.hpp"

namespace fslock::core {

enum class reading : std::uint8_t {
    seen,      ///< Something is there; `what` says what.
    absent,    ///< Nothing is there, as far as this look can tell: only a claim proves it.
    unsteady,  ///< Could not be read just now, or changed while it was read. Neither free nor dead.
    failed     ///< Cannot be read at all; `error` says why.
};

struct read_outcome {
    reading state = reading::failed;
    std::error_code error;
    os::file file;  ///< what was read, still open
    os::file_facts facts;
    parsed what;
};

/// Opens `path` without following a link, blocking or changing anything, and reads it twice, since beats are written
/// in place: content counts only when both reads agree. What is no regular file, or too large, is foreign.
[[nodiscard]] task<read_outcome> read_record_at(os::world& w, const std::string& path, os::fs_class on,
                                                os::access how = os::access::read);

/// The same once more through `file`, which stays where it is: `read_outcome::file` is empty.
[[nodiscard]] task<read_outcome> read_again(os::world& w, const os::file& file);

}  // namespace fslock::core
