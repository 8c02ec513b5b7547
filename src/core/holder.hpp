// The owner's side: keep the record fresh, know whether it is still ours, give it back.
#pragma once

#include "contender.hpp"

namespace fslock::core {

enum class standing : std::uint8_t {
    ours,  ///< The record at the path is ours.
    lost,  ///< It is not, for good.
    unsure ///< It could not be found out just now.
};

struct standing_outcome {
    standing now = standing::unsure;
    loss why = loss::none;  ///< for `lost`
    std::error_code error;  ///< for `unsure`
};

/// A held lock, as far as the disk is concerned. One step at a time.
class holder {
 public:
    /// REQUIRES: `published` was claimed at the path of `where`.
    holder(place where, prepared published, steady now);

    [[nodiscard]] const place& where() const noexcept { return where_; }
    /// As it was claimed; heartbeats do not change it, so it may be read at any time.
    [[nodiscard]] const record& rec() const noexcept { return rec_; }
    [[nodiscard]] bool guarded() const noexcept { return rec_.guard != os::witness_kind::none; }
    /// When the last heartbeat was written, the claim included.
    [[nodiscard]] steady last_beat() const noexcept { return last_beat_; }

    /// Writes a heartbeat into the record's own inode and then looks whether the path still leads there. A copy of
    /// the record under another inode (restored from a backup) is adopted.
    [[nodiscard]] task<standing_outcome> beat(os::world& w);
    /// Looks whether the path still leads to our record.
    [[nodiscard]] task<standing_outcome> verify(os::world& w);
    /// Removes the record if it is ours. `errc::lost` when it is not, EBUSY while somebody else is at its removal;
    /// otherwise what the removal says. In every case the witness ends. Without a witness, any error but `errc::lost`
    /// means that the record is still there and looks alive: release again later. `c` is used only if the removal
    /// needs the token.
    [[nodiscard]] task<std::error_code> release(contender& c);
    /// From now on this process takes a record that could not be removed for left over, and may remove it.
    void abandon(os::world& w) noexcept;

 private:
    task<standing_outcome> look(os::world& w);
    task<standing_outcome> absent(os::world& w);
    void look_for_waiters(contender& c) const;
    task<standing_outcome> adopt(os::world& w);
    task<standing_outcome> look_without_witness(os::world& w);
    task<std::error_code> write_beat(os::world& w);
    task<bool> somebody_may_remove(contender& c);
    task<standing_outcome> look_to_remove(os::world& w, bool& under_token);
    task<std::error_code> remove_under_token(contender& c);
    task<std::error_code> unlock(os::world& w);
    task<std::error_code> remove_record(os::world& w);

    place where_;
    os::file file_;  ///< of a guarded record: keeps its witness
    os::file_facts facts_;
    record rec_;
    steady last_beat_;
    bool beat_late_ = false;  ///< once after a silence that others may have taken for death
    std::optional<steady> absent_since_;  ///< on a shared filesystem: since when looks have found nothing
};

}  // namespace fslock::core
