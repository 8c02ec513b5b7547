// One process of a simulation, and what it may meet, for tests that lead it from step to step.
#pragma once

#include <boost/test/unit_test.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "core/breaking.hpp"
#include "core/contend.hpp"
#include "core/holder.hpp"
#include "core/record.hpp"
#include "simulation.hpp"

namespace support {

namespace core = fslock::core;

/// One filesystem and one host.
struct small_world : sim_disk {
    small_world() { host.living = {100, 101, 300}; }
    sim_host host;
};

struct silent final : core::reporter {
    void report(fslock::event) override {}
};

inline core::record record_of(int pid) {
    core::record r;
    r.pid = pid;
    r.hostname = "sim";
    r.boot_id = "boot";
    r.process_start_time = static_cast<std::uint64_t>(pid);
    r.created_at_ms = r.heartbeat_at_ms = 1'600'000'000'000;
    r.writer_epoch = std::to_string(pid) + "-1600000000000000000";
    return r;
}

inline core::record guarded_record_of(int pid) {
    auto r = record_of(pid);
    r.pid_ns = 1;
    r.guard = os::witness_kind::ofd;
    r.heartbeat_ms = 5000;
    return r;
}

// To the simulated kernel those from 100 on live.
inline constexpr int dead = 50;
inline constexpr int living = 300;

/// One process that wants, holds and gives back the lock /d/x, one step at a time.
class led_process {
 public:
    explicit led_process(small_world& kernel, const fslock::options& o = {}, os::fs_class filesystem = os::fs_class::local,
                   int pid = 100)
        : process(kernel, kernel.host, pid), opts(o), contender(process, where, opts, process, nobody, seen) {
        kernel.kind = filesystem;
        where.where = std::make_shared<core::directory>("/d", os::directory_facts{{}, filesystem});
        (void)core::split("/d/x", where.lock);
    }

    void contend() {
        run_ = contending();
        run_.resume();
    }
    void beat() {
        run_ = beating();
        run_.resume();
    }
    void release() {
        run_ = releasing();
        run_.resume();
    }
    void break_lock(const std::string& epoch) {
        run_ = breaking(epoch);
        run_.resume();
    }

    /// Whether a call that begins with `what` is about to happen: before it does.
    [[nodiscard]] bool comes_to(std::string_view what) {
        for (int i = 0; i < 1000 && process.waits(); ++i) {
            if (process.next().starts_with(what)) return true;
            process.step();
        }
        return false;
    }
    void go_on() { (void)comes_to("nothing of this name"); }

    core::standing verify() {
        run_ = verifying();
        run_.resume();
        go_on();
        return found.now;
    }
    [[nodiscard]] bool owns() const { return held != nullptr; }
    void acquire() {
        contend();
        go_on();
        BOOST_REQUIRE(owns());
    }

    sim_process process;
    core::place where;
    fslock::options opts;
    silent nobody;
    core::sightings seen;
    core::contender contender;
    std::unique_ptr<core::holder> held;
    core::standing_outcome found;
    std::error_code released;
    core::break_outcome broke;

 private:
    core::task<int> contending() {
        const auto out = co_await core::contend(contender, false);
        if (out.how == core::ending::owned)
            held = std::make_unique<core::holder>(where, std::move(contender.mine), process.now());
        co_return 0;
    }
    core::task<int> beating() {
        found = co_await held->beat(process);
        co_return 0;
    }
    core::task<int> verifying() {
        found = co_await held->verify(process);
        co_return 0;
    }
    core::task<int> releasing() {
        released = co_await held->release(contender);
        co_return 0;
    }
    core::task<int> breaking(std::string epoch) {
        broke = co_await core::break_record(contender, std::move(epoch));
        co_return 0;
    }

    core::task<int> run_;
};

inline const std::string lock_path = "/d/x";
inline const std::string token_path = "/d/.x.reclaim";

inline const std::string& text_at(const small_world& k, const std::string& path) {
    static const std::string none;
    const auto at = k.names.find(path);
    return at == k.names.end() ? none : k.inodes.at(at->second).content;
}

inline void leave_dead_owner_and_token(small_world& k) {
    for (const auto& path : {lock_path, token_path}) k.put(path, core::format(guarded_record_of(dead)), 3600 * one_second);
}

/// The epoch of an owner whose clock was years ahead of ours.
inline constexpr std::int64_t far_ahead = 1'800'000'000'000'000'000;
inline core::record ahead_of_us(core::record r) {
    r.writer_epoch = core::epoch_of(r.pid, far_ahead);
    return r;
}

/// Another file in place of the one at `path`.
inline int replace(small_world& k, const std::string& path, const std::string& content) {
    k.names.erase(path);
    return k.put(path, content, 0);
}

}  // namespace support
