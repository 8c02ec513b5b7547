// The world of this process, one call of which fails, or is the last one before the process dies.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "core/contender.hpp"
#include "os/world.hpp"

namespace faults {

namespace os = fslock::os;

/// The calls that can fail.
enum class step : std::uint8_t {
    create_unnamed, create, open, read, write, facts, facts_at, touch, sync, sync_directory, link, rename_exclusive,
    rename, unlink, directory, lock, unlock, probe, process
};
[[nodiscard]] const char* name_of(step s) noexcept;

enum class effect : std::uint8_t {
    none,   ///< It did not happen, as it says.
    whole,  ///< It did happen: only the answer was lost. Plausible where there is a network in between.
    half    ///< Half of it did: a short write.
};

/// How a call fails. A lock that fails is unknown, whatever the code.
struct fault {
    int code = 0;
    effect how = effect::none;
};

/// What may happen to a call of that kind on such a filesystem.
[[nodiscard]] std::span<const fault> plausible(step s, os::fs_class on) noexcept;

enum class extent : std::uint8_t {
    once,
    same_for_ever,  ///< and all later calls of its kind
    all_for_ever    ///< and all later calls
};

/// The `at`-th call fails; with 0 none does.
struct plan {
    unsigned at = 0;
    fault what;
    extent how_long = extent::once;
};

/// Thrown when somebody makes calls without end.
struct endless {};

/// Forwards to `os::this_world()`. Time leaps when somebody sleeps; chance always says the same. Nothing is synced:
/// nobody cuts the power. Keeps account of what was done.
class faulty_world final : public os::world, public fslock::core::sleeper {
 public:
    explicit faulty_world(plan p = {}) : plan_(p) {}

    /// From now on nothing fails.
    void heal() noexcept { plan_ = {}; }
    /// Ends the process right after the `number`-th call.
    void die_after(unsigned number) noexcept { last_ = number; }
    [[nodiscard]] unsigned calls() const noexcept { return calls_; }
    [[nodiscard]] unsigned failed() const noexcept { return failed_; }
    /// What the call number `plan::at` was, if there was one.
    [[nodiscard]] std::optional<step> hit() const noexcept { return hit_; }
    [[nodiscard]] const std::set<int>& codes() const noexcept { return codes_; }
    /// Whether a name could not be removed, nor be moved, looked at or locked, which has to come before that.
    [[nodiscard]] bool kept_from_removing(const std::string& path) const { return kept_.contains(path); }
    [[nodiscard]] bool remembers_epochs();
    [[nodiscard]] std::chrono::nanoseconds slept() const noexcept { return leapt_; }

    /// Whether the wall clock and that of the filesystem leap as well: all files get older.
    bool wall_clock_leaps = false;
    /// Whether the kernel claims to tell of changes; it then never does.
    bool tells = false;
    /// Called before each sleep with its number.
    std::function<void(unsigned)> on_sleep;

    // -- sleeper
    os::call<fslock::core::wake> sleep(steady until) override;
    os::call<fslock::core::wake> wait_for_change(steady until) override { return sleep(until); }
    os::result<fslock::core::watching> watch_record(const std::string&, const os::file_facts&) override;
    os::result<fslock::core::watching> watch_process(int) override;

    // -- world
    os::call<os::result<os::new_file>> create_unnamed(const std::string& directory, unsigned mode,
                                                      os::fs_class on) override;
    os::call<os::result<os::new_file>> create(const std::string& path, unsigned mode, os::fs_class on) override;
    os::call<os::result<os::file>> open(const std::string& path, os::access how, os::fs_class on) override;
    os::call<os::result<std::size_t>> read(const os::file& from, std::span<char> into) override;
    os::call<std::error_code> write(const os::file& to, std::string_view data) override;
    os::call<os::result<os::file_facts>> facts(const os::file& of) override;
    os::call<os::result<os::file_facts>> facts_at(const std::string& path) override;
    os::call<os::result<std::int64_t>> touch(const os::file& of) override;
    os::call<std::error_code> sync(const os::file& of) override;
    os::call<std::error_code> sync_directory(const std::string& directory) override;
    os::call<std::error_code> link(const os::file& of, const std::string& from, const std::string& to) override;
    os::call<std::error_code> rename_exclusive(const std::string& from, const std::string& to) override;
    os::call<std::error_code> rename(const std::string& from, const std::string& to) override;
    os::call<std::error_code> unlink(const std::string& path) override;
    os::call<bool> has_name(const std::string& directory, const std::string& prefix,
                            const os::file_facts& of) override;
    os::call<os::result<os::file_facts>> directory(const std::string& path) override;
    os::call<os::result<os::directory_facts>> classify(const std::string& path) override;
    os::witness_kind system_witness() override;
    os::witness_kind new_witness() override;
    bool may_keep_waiting_files() override { return true; }
    os::call<os::lock_state> lock(const os::file& on, os::lock_byte which, os::witness_kind how) override;
    os::call<std::error_code> unlock(const os::file& on, os::lock_byte which, os::witness_kind how) override;
    os::call<os::lock_state> probe(const os::file& on, os::lock_byte which, os::witness_kind how) override;
    void show_waiting(const os::file& on) override;
    bool is_waited_for(const os::file& of) override;
    const os::identity& self() override;
    os::call<os::process_facts> process(int pid) override;
    steady now() override;
    steady::duration suspended() override { return {}; }
    std::int64_t wall_ns() override;
    std::int64_t next_stamp(std::int64_t floor) override;
    std::uint32_t random() override { return 512; }
    void remember_epoch(std::int64_t stamp) override;
    void forget_epoch(std::int64_t stamp) override;
    bool knows_epoch(std::int64_t stamp) override;
    void close(int handle, unsigned generation) noexcept override;

 private:
    [[nodiscard]] std::optional<fault> next(step s);
    template <class T, class Real>
    os::call<T> attempt(step s, Real real);
    template <class T>
    os::call<T> last_words(os::call<T> answer) const;

    plan plan_;
    unsigned last_ = 0;
    unsigned calls_ = 0;
    unsigned failed_ = 0;
    unsigned sleeps_ = 0;
    std::optional<step> hit_;
    std::set<int> codes_;
    std::set<std::string> kept_;
    std::string last_opened_;  ///< what is read or locked, is so right after it was opened
    std::set<std::int64_t> epochs_;
    std::chrono::nanoseconds leapt_{0};
};

}  // namespace faults
