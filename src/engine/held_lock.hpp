// A lock that is held: what a `lock_guard` points to.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>

#include "../core/holder.hpp"
#include "due_heap.hpp"
#include "event_sink.hpp"
#include "turn.hpp"

namespace fslock::engine {

/// What of the options matters after the acquisition. A lock is to be small: what is mostly left at its default is kept
/// only if it is not.
class kept_options {
 public:
    explicit kept_options(const options& o);
    [[nodiscard]] options all() const;

    const std::chrono::milliseconds heartbeat_interval;
    const fslock::events events;

 private:
    std::chrono::milliseconds stale_after_;
    unsigned mode_;
    fslock::witness witness_;
    std::unique_ptr<const options> unusual_;  ///< all of them, if there is more to keep
};

/// How the kernel tells of a loss.
struct watches {
    bool asked = false;
    std::optional<int> record;
    std::optional<int> directory;
};

/// Kept fresh by its registry and released by its guard; the two may meet on different threads. A step on the disk is
/// made under a mutex of this lock alone, since its descriptor must not be closed under a heartbeat.
class held_lock final : public due_item, public std::enable_shared_from_this<held_lock> {
 public:
    held_lock(std::shared_ptr<registry> home, turn mine, core::holder on_disk, const options& o, optional_reporter told);
    ~held_lock();

    [[nodiscard]] const std::string& path() const noexcept { return on_disk_.where().path(); }
    /// The same, made when first asked for: it takes more memory than the rest of a lock.
    [[nodiscard]] const std::filesystem::path& as_path() const;
    [[nodiscard]] const std::string& epoch() const noexcept { return on_disk_.rec().writer_epoch; }
    [[nodiscard]] const core::record& rec() const noexcept { return on_disk_.rec(); }
    [[nodiscard]] const std::shared_ptr<registry>& home() const noexcept { return home_; }
    [[nodiscard]] std::chrono::milliseconds interval() const noexcept { return opts_.heartbeat_interval; }
    [[nodiscard]] path_entry& entry() const noexcept { return turn_.entry(); }
    [[nodiscard]] const std::shared_ptr<event_sink>& sink() const noexcept { return told_.sink(); }
    [[nodiscard]] bool has_turn() const noexcept { return static_cast<bool>(turn_); }
    [[nodiscard]] bool lost() const noexcept { return lost_; }
    [[nodiscard]] bool released() const noexcept { return released_; }
    /// Whether its calls may hang: then they are made on the pool.
    [[nodiscard]] bool slow() const noexcept { return on_disk_.where().shared(); }
    [[nodiscard]] std::string lane() const { return on_disk_.where().where->lane(); }
    /// Made before a fork, seen by the child: it owns nothing here.
    [[nodiscard]] bool inherited() const noexcept;

    /// One heartbeat. Reports what changed.
    void beat();
    /// Whether a beat may begin. If the last one hangs, says so when that has taken long.
    [[nodiscard]] bool begins_beat();
    /// Looks whether the record is still ours, out of turn. Reports a loss.
    void look();
    /// Whether the record at the path is still ours.
    [[nodiscard]] bool verify(error_code& ec);
    /// Gives it back now, on this thread; later calls do nothing.
    [[nodiscard]] error_code release() noexcept;
    /// The same without a result, and on the pool where it may hang.
    void let_go() noexcept;
    /// Nobody is to be told of a loss any more, or not through the guard they asked.
    void end_loss_waits() const noexcept;
    void set_awaited() noexcept { awaited_ = true; }
    void set_lost() noexcept { lost_ = true; }

    [[nodiscard]] const std::string& directory() const noexcept { return on_disk_.where().where->path; }
    [[nodiscard]] bool wants_watching() const noexcept { return opts_.events == events::automatic && !slow() && !lost_; }
    watches watched_by;    ///< under the mutex of the registry
    bool is_work = false;  ///< likewise; whether it is counted there

 private:
    void step();
    [[nodiscard]] bool note(const core::standing_outcome& out);
    [[nodiscard]] std::error_code remove() noexcept;
    void try_again_after(std::chrono::milliseconds pause) noexcept;
    void abandon() noexcept;
    void note_lateness(std::error_code error);
    void report(event_kind kind, std::error_code error, std::uint64_t count = 0, loss why = loss::none);

    const std::shared_ptr<registry> home_;
    turn turn_;
    const kept_options opts_;
    optional_reporter told_;
    const unsigned generation_;
    std::mutex on_disk_mutex_;
    core::holder on_disk_;
    std::atomic<std::uint64_t> failures_{0};  ///< in a row
    std::atomic<bool> said_at_risk_{false};
    std::atomic<bool> beating_{false};   ///< a beat is under way, or waits for a thread
    std::atomic<steady> last_good_;      ///< when the last good beat began
    std::atomic<bool> awaited_{false};   ///< somebody waits for the loss
    std::atomic<bool> lost_{false};
    std::atomic<bool> released_{false};
    mutable std::atomic<const std::filesystem::path*> as_path_{nullptr};
};

}  // namespace fslock::engine
