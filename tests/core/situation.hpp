// Evidence for the judge, built up from one harmless base, and rows that say what the judge makes of it.
#pragma once

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstdint>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <utility>

#include "core/judge.hpp"
#include "core/record.hpp"
#include "os/world.hpp"

namespace fslock {

inline std::ostream& boost_test_print_type(std::ostream& out, proof p) {
    return out << to_string(p);
}

namespace core {

inline std::ostream& boost_test_print_type(std::ostream& out, fate f) {
    static constexpr const char* words[] = {"alive", "dead", "being_reclaimed", "unknown", "not_a_lock"};
    return out << words[static_cast<int>(f)];
}

}  // namespace core
}  // namespace fslock

namespace support {

using fslock::proof;
using fslock::core::fate;
using fslock::os::fs_class;
using fslock::os::lock_state;
using fslock::os::witness_kind;
using life = fslock::os::process_facts::state;
using milliseconds = std::chrono::milliseconds;

inline constexpr int our_pid = 4000;
inline constexpr int peer_pid = 5000;
inline constexpr std::uint64_t our_start = 777'000;
inline constexpr std::uint64_t peer_start = 888'000;
inline constexpr std::uint64_t our_namespace = 4'026'531'836;
inline constexpr const char* our_boot = "11111111-2222-4333-8444-555555555555";
inline constexpr const char* our_node = "alpha";
inline constexpr std::int64_t filesystem_now = 1'700'000'000'000'000'000;
inline constexpr fslock::core::steady now = fslock::core::steady{} + std::chrono::hours(1'000);

inline fslock::os::identity ourselves() {
    fslock::os::identity self;
    self.pid = our_pid;
    self.hostname = self.nodename = our_node;
    self.start_time = our_start;
    self.boot_id = our_boot;
    self.pid_ns = our_namespace;
    return self;
}

/// What is known when a record is judged. Begins as the record of another process in our PID namespace, on a
/// local filesystem, without a witness, beaten this moment, seen for the first time, its process not looked up.
class situation {
 public:
    situation() {
        auto& e = e_;
        e.kind = fslock::core::content::record;
        e.rec.pid = peer_pid;
        e.rec.hostname = our_node;
        e.rec.process_start_time = peer_start;
        e.rec.boot_id = our_boot;
        e.rec.created_at_ms = e.rec.heartbeat_at_ms = filesystem_now / 1'000'000;
        e.rec.writer_epoch = "5000-1700000000000000001";
        e.rec.pid_ns = our_namespace;
        e.filesystem = fs_class::local;
        e.file = {1, 42, 1, 300, filesystem_now, fslock::os::file_kind::regular};
        e.filesystem_now_ns = filesystem_now;
        e.now = now;
        e.seen.silent_since = now;
    }

    // -- the record
    situation& pid(int n) { return e_.rec.pid = n, *this; }
    situation& start(std::optional<std::uint64_t> ticks) { return e_.rec.process_start_time = ticks, *this; }
    situation& boot(std::string id) { return e_.rec.boot_id = std::move(id), *this; }
    situation& host(std::string name) { return e_.rec.hostname = std::move(name), *this; }
    situation& pid_namespace(std::optional<std::uint64_t> inode) { return e_.rec.pid_ns = inode, *this; }
    situation& guard(witness_kind kind) { return e_.rec.guard = kind, *this; }
    situation& pace(std::int64_t ms) { return e_.rec.heartbeat_ms = ms, *this; }
    situation& heartbeat_at(std::int64_t ms) { return e_.rec.heartbeat_at_ms = ms, *this; }

    // -- what it is and where
    situation& malformed() { return e_.rec = {}, e_.kind = fslock::core::content::malformed, *this; }
    situation& foreign() { return e_.rec = {}, e_.kind = fslock::core::content::foreign, *this; }
    situation& token() { return e_.what = fslock::core::subject::token, *this; }
    situation& shared() { return e_.filesystem = fs_class::shared, *this; }

    // -- what the system says
    situation& witness(lock_state s) { return e_.witness = s, *this; }
    situation& removal(lock_state s) { return e_.removal = s, *this; }
    situation& gone() { return e_.process = {life::gone, {}}, *this; }
    situation& exists(std::optional<std::uint64_t> ticks) { return e_.process = {life::exists, ticks}, *this; }
    situation& epoch_is_ours() { return e_.epoch_is_ours = true, *this; }
    situation& without_clock() { return e_.filesystem_now_ns.reset(), *this; }

    // -- silence; ages are in milliseconds, and one below zero is an mtime in the future
    situation& aged(std::int64_t ms) { return e_.file.modified_ns = filesystem_now - ms * 1'000'000, *this; }
    situation& watched(std::int64_t ms) { return e_.seen.silent_since = now - milliseconds(ms), *this; }
    situation& silent(std::int64_t ms) { return aged(ms).watched(ms); }
    situation& changed(std::int64_t ms_ago) { return e_.seen.last_change = now - milliseconds(ms_ago), *this; }

    [[nodiscard]] const fslock::core::evidence& evidence() const noexcept { return e_; }
    [[nodiscard]] fslock::core::evidence& evidence() noexcept { return e_; }

 private:
    fslock::core::evidence e_;
};

/// The record of a peer that knows nothing of PID namespaces.
inline situation seed_peer() {
    return situation().pid_namespace({});
}

/// The record of an owner on another machine.
inline situation remote() {
    return situation().boot("99999999-2222-4333-8444-555555555555").host("beta").pid_namespace({}).shared();
}

struct row {
    const char* name;
    situation given;
    fate what;
    fslock::proof proof = fslock::proof::none;
};

inline void check_rows(std::span<const row> rows, const fslock::os::identity& self = ourselves(),
                       const fslock::options& limits = {}) {
    for (const auto& r : rows) {
        BOOST_TEST_CONTEXT(r.name) {
            const auto v = fslock::core::judge(r.given.evidence(), self, limits);
            BOOST_TEST(v.what == r.what);
            BOOST_TEST(v.proof == r.proof);
        }
    }
}

}  // namespace support
