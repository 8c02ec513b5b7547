// What a worker tells its parent: one line for each piece of news, through one pipe that all workers share.
// Lines shorter than PIPE_BUF do not mix, so the parent reads them in the order in which they were written.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace demo {

using steady = std::chrono::steady_clock::time_point;  // on one machine, the same clock in every process

enum class news : char {
    waits = 'w',  ///< The lock is held by `about`; `text` says how that is known.
    reclaims =
        'r',       ///< Removed the record of `about`, whose epoch is `epoch`; `text` is the proof of its death.
    owns = 'o',    ///< Has the lock, as `epoch`.
    begins = 'b',  ///< Has written the beginning of entry `number` to the ledger.
    ends = 'e',    ///< Has written its end, and is about to give the lock back.
    notes = 'n',   ///< Anything else that the lock reports, in `text`.
    fails = 'f'    ///< `text` says why; the worker is about to exit.
};

struct message {
    message() = default;

    steady at{};
    char worker = '?';
    news what = news::notes;
    std::string epoch;
    int number = 0;
    std::string about;
    std::string text;
};

/// One line, with its newline.
[[nodiscard]] std::string to_line(const message& m);
/// Of a line without its newline; nothing when it is not one of ours.
[[nodiscard]] std::optional<message> from_line(std::string_view line);

}  // namespace demo
