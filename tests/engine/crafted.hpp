// Records and tokens written by hand, as a peer, a crash or a vandal would leave them; and what waiters are
// told.
#pragma once

#include <sys/types.h>

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fslock/event.hpp"
#include "fslock/options.hpp"
#include "support/child.hpp"

namespace support {

using std::chrono::milliseconds;
using namespace std::chrono_literals;

/// What a test waits for an event that has to come.
inline constexpr auto patience = 60s;

/// No process has this pid: it is beyond what any kernel gives out, and still a pid.
inline constexpr pid_t dead_pid = 999'999'999;

// ---- who we are, as the system says it, without asking the library ------------------------------------------

[[nodiscard]] std::string nodename();
[[nodiscard]] std::string boot_id();
/// Field 22 of /proc/<pid>/stat, or empty.
[[nodiscard]] std::string start_time_of(pid_t pid);
/// The inode of our PID namespace, or empty.
[[nodiscard]] std::string pid_namespace();

// ---- records ------------------------------------------------------------------------------------------------

/// A record made of fields in their order. Values are JSON text.
class crafted_record {
 public:
    crafted_record& set(std::string_view key, std::string json);
    crafted_record& text(std::string_view key, std::string_view value);
    crafted_record& without(std::string_view key);
    /// By the owner's wall clock; no verdict may rest on these.
    crafted_record& acquired_before(milliseconds ago);
    crafted_record& beaten_before(milliseconds ago);

    [[nodiscard]] std::string line() const;
    /// Writes it to `path` as if its last write were `age` ago.
    void write(const std::filesystem::path& path, std::chrono::seconds age = 0s) const;

 private:
    std::vector<std::pair<std::string, std::string>> fields_;
};

/// The seven fields of the first implementation, for `pid` on this host and boot, and an epoch of its own.
[[nodiscard]] crafted_record seed_record(pid_t pid);
/// Without start time and boot id, as older versions of it wrote.
[[nodiscard]] crafted_record legacy_record(pid_t pid);
/// In our PID namespace and with a pace of 25 ms, but without a witness.
[[nodiscard]] crafted_record peer_record(pid_t pid);
/// On another host that says nothing of its boot.
[[nodiscard]] crafted_record foreign_record();

/// The JSON text of a field in `line`; empty when there is none.
[[nodiscard]] std::string field_of(const std::string& line, std::string_view key);

/// A name that no lock of this process had: what was seen of a lock is kept by its directory's inode number,
/// which the next test may get again.
[[nodiscard]] std::string fresh_name();

// ---- options and events -------------------------------------------------------------------------------------

/// Quick wherever the library decides, and minutes where a test wants to be on one side of a limit: a record
/// counts as silent after ten minutes, that of another host after thirty.
[[nodiscard]] fslock::options minutes();
/// The same with polls, or heartbeats, that come too late for any test: whoever is told, is told by the kernel.
[[nodiscard]] fslock::options never_polls();
[[nodiscard]] fslock::options never_beats();

/// Collects events. Options that listen share what is collected, so they may outlive it.
class told {
 public:
    [[nodiscard]] fslock::options listening(fslock::options o) const;
    [[nodiscard]] std::vector<fslock::event> all() const;
    [[nodiscard]] std::vector<fslock::event> of(fslock::event_kind kind) const;
    [[nodiscard]] bool has(fslock::event_kind kind) const { return !of(kind).empty(); }

 private:
    struct notes {
        std::mutex mutex;
        std::vector<fslock::event> events;
    };
    std::shared_ptr<notes> notes_ = std::make_shared<notes>();
};

/// Whether `condition` becomes true while we have patience.
[[nodiscard]] bool eventually(const std::function<bool()>& condition);

/// The body of a child that only lives.
void live_on(child::pipe_to_parent&);

/// Precondition: records carry what only Linux can tell (start times, boot ids, PID namespaces).
boost::test_tools::assertion_result linux_facilities(boost::unit_test::test_unit_id);

}  // namespace support
