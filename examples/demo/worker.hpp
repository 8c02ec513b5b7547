// One of the processes that contend for the lock.
#pragma once

#include <filesystem>

namespace demo {

/// The names in the directory of a run.
[[nodiscard]] inline std::filesystem::path lock_in(const std::filesystem::path& directory) {
    return directory / "ledger.lock";
}
[[nodiscard]] inline std::filesystem::path ledger_in(const std::filesystem::path& directory) {
    return directory / "ledger";
}

/// Takes its turns at the ledger until standard input ends; reports on standard output, see demo_message.hpp.
/// Returns the exit status.
[[nodiscard]] int run_worker(char name, const std::filesystem::path& directory);

}  // namespace demo
