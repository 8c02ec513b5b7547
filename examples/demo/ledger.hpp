// The shared file that only the owner of the lock may write, and the proof that it was so.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace demo {

/// A line of the ledger: `begin 17 B 4711-1700000000000000000`, and later `end 17 B ...` by the same owner.
struct mark {
    mark() = default;

    bool begins = true;
    int number = 0;  ///< 0: the line is damaged
    char worker = '?';
    std::string epoch;
};

/// Adds one line, with one write.
void append(const std::filesystem::path& ledger, const mark& m);
[[nodiscard]] std::vector<mark> read(const std::filesystem::path& ledger);

/// What one owner is known to have written, and what became of it.
struct report {
    int number = 0;
    char worker = '?';
    bool ended = false;
    bool killed = false;
};
using reports = std::map<std::string, report>;  ///< by writer epoch

struct finding {
    int entries = 0;
    int unfinished = 0;
    std::vector<std::string> faults;  ///< empty: no overlap, and nothing lost
};

/// Compares the ledger with what the workers reported. An entry may lack its end only if its writer was killed.
[[nodiscard]] finding check(const std::vector<mark>& ledger, const reports& reported);

}  // namespace demo
