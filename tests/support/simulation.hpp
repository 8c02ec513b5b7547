// A filesystem in memory, hosts that share it, and processes that meet there: every call that others can see waits
// until the test lets it happen, so that a test decides about every interleaving, and about who dies or stops when.
#pragma once

#include <coroutine>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/contender.hpp"
#include "os/world.hpp"

namespace support {

namespace os = fslock::os;

class sim_process;

inline constexpr std::int64_t one_second = 1'000'000'000;

/// A running digest of numbers.
struct digest {
    std::uint64_t value = 1469598103934665603ULL;
    void add(std::uint64_t n) noexcept {
        value = (value ^ n) * 1099511628211ULL;
        value ^= value >> 29;
    }
};

/// One kernel: its boot, its processes, its clocks.
struct sim_host {
    int number = 0;
    std::string name = "sim";
    std::string boot = "boot";
    std::int64_t skew_ns = 0;       ///< of its wall clock
    std::int64_t suspended_ns = 0;  ///< for how long it has been suspended: what its steady clock does not count
    std::set<int> living;           ///< pids
    /// What it saw at a name of a shared filesystem, and when.
    std::map<std::string, std::pair<std::int64_t, os::result<os::file_facts>>> seen_at;
};

/// What all hosts share. Inode numbers are used again at once, as by the worst of filesystems.
struct sim_disk {
    struct inode {
        std::string content;
        std::uint64_t content_hash = 0;
        std::int64_t modified_ns = 0;
        int open = 0;  ///< descriptors, in all processes
        bool had_name = false;  ///< by a link: who has none any more gets none either (linkat(2))
        os::file_kind kind = os::file_kind::regular;
        /// By process and descriptor. Those of one host do not reach the others.
        std::map<std::pair<int, os::lock_byte>, std::pair<const sim_process*, int>> locks;
    };

    std::map<std::string, int> names;
    std::map<int, inode> inodes;
    std::int64_t now_ns = 1'700'000'000 * one_second;  ///< the true time; no clock that anybody can read
    std::int64_t skew_ns = 0;                          ///< of the clock that sets mtimes
    os::fs_class kind = os::fs_class::local;
    /// How long a host may go on seeing what it saw: at a name by `facts_at`, in a file by a descriptor opened then.
    std::int64_t cache_ns = 0;
    /// Whether sleeping takes time. While the clock stands still, states that differ in nothing but the time are one.
    std::error_code directory_sync;  ///< what each of them says
    bool clock_runs = false;
    bool unnamed_files = true;
    bool hard_links = true;
    bool exclusive_rename = false;
    /// What kernels have: `flock` has no bytes, and one lock only.
    os::witness_kind witness = os::witness_kind::ofd;
    /// Called before a process takes a name from an inode.
    std::vector<std::function<void(const sim_process& who, const std::string& name, int inode)>> on_removal;
    /// Whether a record that can be seen may still be written: only then is reading it a step of its own.
    bool records_change = false;

    /// A file that was there before.
    int put(const std::string& path, const std::string& content, std::int64_t age_ns);
    void rewrite(int inode, const std::string& text);
    void tell_of_removal(const sim_process& who, const std::string& name) const;
    [[nodiscard]] std::int64_t clock_ns() const noexcept { return now_ns + skew_ns; }
    [[nodiscard]] int links_to(int inode) const;
    [[nodiscard]] os::file_facts facts_of(int inode) const;
    int make_inode();
    /// Takes a name away, and what nobody has any more with it.
    void remove(const std::string& path);
    void drop_if_unused(int inode);
    /// All that a process could find out, as a number.
    [[nodiscard]] std::uint64_t state() const;
};

/// What the caller is told of a link or a removal that was made: the truth, or what a lost reply of a server turns into.
/// A rename that is tried once more finds that there is nothing to be renamed; an `open` that fails opens nothing.
enum class sim_reply { truth, io_error, exists, retried };

/// One process with one coroutine in it.
class sim_process final : public os::world, public fslock::core::deaf_sleeper, private os::suspension {
 public:
    sim_process(sim_disk& disk, sim_host& host, int pid);
    sim_process(const sim_process&) = delete;
    sim_process& operator=(const sim_process&) = delete;
    ~sim_process() override { die(); }

    /// Whether its coroutine waits for a call to happen.
    [[nodiscard]] bool waits() const noexcept { return static_cast<bool>(waiting_); }
    /// Lets the call happen and runs on to the next.
    void step(sim_reply reply = sim_reply::truth);
    /// SIGKILL: its descriptors and locks are gone; it does nothing any more.
    void die();
    [[nodiscard]] int pid() const noexcept { return self_.pid; }
    [[nodiscard]] bool dead() const noexcept { return dead_; }
    [[nodiscard]] sim_host& host() const noexcept { return host_; }
    /// When it wants to wake up, in true time; nothing while it is awake.
    [[nodiscard]] std::optional<std::int64_t> wakes_at() const;
    /// Whether its next call links a file to a name that has no temporary file, and whose reply can be lost.
    [[nodiscard]] bool claims() const noexcept {
        return next_.starts_with("link") && next_.find(".tmp.") == std::string::npos;
    }
    /// How often it still sleeps; then its waits are cancelled. Without a limit there would be no end of schedules.
    int patience = 3;
    /// What `random` answers.
    std::function<std::uint32_t()> chance;
    /// All that it was told so far, as a number: equal numbers, equal coroutines.
    [[nodiscard]] std::uint64_t history() const noexcept { return history_.value; }
    /// What it is about to do.
    [[nodiscard]] const std::string& next() const noexcept { return next_; }

    // -- sleeper
    os::call<fslock::core::wake> sleep(steady until) override;

    // -- world
    os::call<os::result<os::new_file>> create_unnamed(const std::string& directory, unsigned mode, os::fs_class) override;
    os::call<os::result<os::new_file>> create(const std::string& path, unsigned mode, os::fs_class) override;
    os::call<os::result<os::file>> open(const std::string& path, os::access how, os::fs_class) override;
    os::call<os::result<std::size_t>> read(const os::file& from, std::span<char> into) override;
    os::call<std::error_code> write(const os::file& to, std::string_view data) override;
    os::call<os::result<os::file_facts>> facts(const os::file& of) override;
    os::call<os::result<os::file_facts>> facts_at(const std::string& path) override;
    os::call<os::result<std::int64_t>> touch(const os::file& of) override;
    os::call<std::error_code> sync(const os::file&) override { return std::error_code(); }
    os::call<std::error_code> sync_directory(const std::string&) override { return disk_.directory_sync; }
    os::call<std::error_code> link(const os::file& of, const std::string& from, const std::string& to) override;
    os::call<std::error_code> rename_exclusive(const std::string& from, const std::string& to) override;
    os::call<std::error_code> rename(const std::string& from, const std::string& to) override;
    os::call<std::error_code> unlink(const std::string& path) override;
    os::call<bool> has_name(const std::string& directory, const std::string& prefix, const os::file_facts& of) override;
    os::call<os::result<os::file_facts>> directory(const std::string& path) override;
    os::call<os::result<os::directory_facts>> classify(const std::string& path) override;
    os::witness_kind system_witness() override { return disk_.witness; }
    os::witness_kind new_witness() override { return disk_.witness; }
    bool may_keep_waiting_files() override { return true; }
    os::call<os::lock_state> lock(const os::file& on, os::lock_byte which, os::witness_kind how) override;
    os::call<std::error_code> unlock(const os::file& on, os::lock_byte which, os::witness_kind how) override;
    os::call<os::lock_state> probe(const os::file& on, os::lock_byte which, os::witness_kind how) override;
    void show_waiting(const os::file&) override {}
    bool is_waited_for(const os::file&) override { return false; }
    const os::identity& self() override { return self_; }
    os::call<os::process_facts> process(int pid) override;
    steady now() override { return steady(std::chrono::nanoseconds(disk_.now_ns - host_.suspended_ns)); }
    steady::duration suspended() override { return std::chrono::nanoseconds(host_.suspended_ns); }
    std::int64_t wall_ns() override { return disk_.now_ns + host_.skew_ns; }
    std::int64_t next_stamp(std::int64_t floor) override;
    std::uint32_t random() override { return chance ? chance() : 0; }
    void remember_epoch(std::int64_t stamp) override { epochs_.insert(stamp); }
    void forget_epoch(std::int64_t stamp) override { epochs_.erase(stamp); }
    bool knows_epoch(std::int64_t stamp) override { return epochs_.contains(stamp); }
    void close(int handle, unsigned generation) noexcept override;

 private:
    struct open_file {
        int inode = 0;
        os::access how = os::access::read;
        std::int64_t opened_ns = 0;
        std::string content;  ///< as it was then; only where there is a cache
        std::int64_t modified_ns = 0;
    };

    template <class T, class F>
    os::call<T> visible(std::string what, F f);
    void suspended(std::coroutine_handle<> waiting, void* slot) override;
    [[nodiscard]] open_file& entry(const os::file& f) { return handles_.at(f.handle()); }
    [[nodiscard]] bool lags(const open_file& f) const { return disk_.now_ns - f.opened_ns < disk_.cache_ns; }
    [[nodiscard]] os::result<os::file_facts> look_at(const std::string& path);
    [[nodiscard]] bool is_private(const os::file& f);
    os::file open_inode(int inode, os::access how);
    void note(std::uint64_t heard) noexcept { history_.add(heard); }
    void note(const std::error_code& e) noexcept { note(static_cast<std::uint64_t>(e.value()) + 1); }
    void note(os::lock_state s) noexcept { note(static_cast<std::uint64_t>(s)); }
    void note(fslock::core::wake w) noexcept { note(static_cast<std::uint64_t>(w)); }
    void note(const os::file_facts& f) noexcept;
    void note(bool b) noexcept { note(static_cast<std::uint64_t>(b)); }
    void note(const os::process_facts& p) noexcept { note(static_cast<std::uint64_t>(p.life)); }
    void note(const os::file& f) noexcept { note(static_cast<std::uint64_t>(f.handle())); }
    void note(const os::new_file& f) noexcept { note(f.facts); }
    template <class T>
    void note(const os::result<T>& r) noexcept {
        note(r.error());
        if (r) note(*r);
    }

    sim_disk& disk_;
    sim_host& host_;
    os::identity self_;
    std::map<int, open_file> handles_;
    std::set<std::int64_t> epochs_;
    std::function<void(void*)> todo_;
    std::coroutine_handle<> waiting_;
    void* slot_ = nullptr;
    std::string next_;
    std::int64_t sleeps_until_ns_ = 0;  ///< by the steady clock
    sim_reply reply_ = sim_reply::truth;
    digest history_;
    std::int64_t last_stamp_ = 0;
    bool dead_ = false;
};

template <class T, class F>
os::call<T> sim_process::visible(std::string what, F f) {
    next_ = std::move(what);
    todo_ = [this, f = std::move(f)](void* slot) mutable {
        T answer = f();
        note(answer);
        *static_cast<T*>(slot) = std::move(answer);
    };
    return os::call<T>(static_cast<os::suspension&>(*this));
}

}  // namespace support
