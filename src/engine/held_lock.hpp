// A lock that is held: what a `lock_guard` points to.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "../core/holder.hpp"
#include "due_heap.hpp"
#include "event_sink.hpp"
#include "turn.hpp"

namespace fslock::engine {

/// Kept fresh by its registry and released by its guard; the two may meet on different threads. A step on the disk is
/// made under a mutex of this lock alone, since its descriptor must not be closed under a heartbeat.
class held_lock final : public due_item, public std::enable_shared_from_this<held_lock> {
 public:
    held_lock(std::shared_ptr<registry> home, turn mine, core::holder on_disk, options o, optional_reporter told);
    ~held_lock();

    [[nodiscard]] const std::filesystem::path& path() const noexcept { return on_disk_.where().lock.full; }
    [[nodiscard]] const std::string& epoch() const noexcept { return on_disk_.rec().writer_epoch; }
    [[nodiscard]] const core::record& rec() const noexcept { return on_disk_.rec(); }
    [[nodiscard]] const std::shared_ptr<registry>& home() const noexcept { return home_; }
    [[nodiscard]] std::chrono::milliseconds interval() const noexcept { return opts_.heartbeat_interval; }
    [[nodiscard]] path_entry& entry() const noexcept { return turn_.entry(); }
    [[nodiscard]] const std::shared_ptr<event_sink>& sink() const noexcept { return told_.sink(); }
    [[nodiscard]] bool has_turn() const noexcept { return static_cast<bool>(turn_); }
    [[nodiscard]] bool lost() const noexcept { return lost_; }
    /// Whether its calls may hang: then they are made on the pool.
    [[nodiscard]] bool slow() const noexcept { return on_disk_.where().shared(); }
    [[nodiscard]] std::string lane() const { return on_disk_.where().where->lane(); }
    /// Made before a fork, seen by the child: it owns nothing here.
    [[nodiscard]] bool inherited() const noexcept;

    /// One heartbeat. Reports what changed.
    void beat();
    /// Whether the record at the path is still ours.
    [[nodiscard]] bool verify(error_code& ec);
    /// Gives it back now, on this thread; later calls do nothing.
    [[nodiscard]] error_code release() noexcept;
    /// The same without a result, and on the pool where it may hang.
    void let_go() noexcept;

 private:
    [[nodiscard]] bool note(const core::standing_outcome& out);
    [[nodiscard]] error_code remove() noexcept;
    void keep_trying() noexcept;
    void report(event_kind kind, std::error_code error, std::uint64_t count = 0);

    const std::shared_ptr<registry> home_;
    turn turn_;
    const options opts_;
    optional_reporter told_;
    const unsigned generation_;
    std::mutex on_disk_mutex_;
    core::holder on_disk_;
    std::uint64_t failures_ = 0;  ///< in a row
    bool said_at_risk_ = false;
    std::atomic<bool> lost_{false};
    std::atomic<bool> released_{false};
};

}  // namespace fslock::engine
