// The commands of the program, and what each is given. Each returns the status to exit with.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace cli {

enum class on_lost { kill, warn };

struct waiting_request {
    std::string lock;
    std::optional<std::chrono::milliseconds> timeout;  ///< absent: for as long as it takes
    int conflict_status = 1;
    bool quiet = false;
};

struct run_request : waiting_request {
    std::vector<std::string> command;
    std::string label;  ///< empty: the command
    cli::on_lost on_lost = cli::on_lost::kill;
    std::chrono::milliseconds kill_after{10'000};
    bool durable = false;
    std::optional<unsigned> mode;  ///< absent: as the library has it, like those below
    std::optional<std::chrono::milliseconds> heartbeat;
    std::optional<std::chrono::milliseconds> foreign_stale_after;
    bool verbose = false;
};

struct status_request {
    std::vector<std::string> paths;
    bool json = false;
};

struct break_request {
    std::string lock;
    std::string epoch;
};

struct sweep_request {
    std::string directory;
    std::vector<std::string> domains;
    unsigned depth = 2;
    double temp_hours = 6;
    bool dry_run = false;
    bool other_filesystems = false;
    bool verbose = false;
};

struct doctor_request {
    std::string directory;
};

[[nodiscard]] int run(const run_request& r);
[[nodiscard]] int wait(const waiting_request& r);
[[nodiscard]] int status(const status_request& r);
[[nodiscard]] int break_lock(const break_request& r);
[[nodiscard]] int sweep(const sweep_request& r);
[[nodiscard]] int doctor(const doctor_request& r);

}  // namespace cli
