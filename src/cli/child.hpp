// The command that `run` runs: a child process.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <system_error>
#include <vector>

namespace cli {

struct child_setup {
    std::vector<std::string> command;
    std::vector<std::string> variables;  ///< `NAME=value`, besides our own
    std::vector<int> signals;            ///< caught by us: the command gets them as they were
    bool dies_with_us = false;           ///< killed when we are, where the system can do that
};

/// Starts the command, found as a shell finds it. No descriptor of ours reaches it, nor any signal that we have caught.
/// The error is that of `exec` where that failed; then there is no child.
[[nodiscard]] std::error_code start_child(const child_setup& setup, pid_t& pid);

/// The status to exit with when the child has ended, without waiting for that: its own, or 128 and the signal.
[[nodiscard]] std::optional<int> reap_child(pid_t pid);

/// Whether a signal that a terminal makes (SIGINT, SIGQUIT) reaches the child without us: both are in its foreground.
[[nodiscard]] bool terminal_signals_us() noexcept;

}  // namespace cli
