// Staying out of the way where many processes contend for one lock.
#pragma once

#include <cstdint>
#include <vector>

#include "judge.hpp"

namespace fslock::core {

/// Who contends for a lock, by the owners that were seen. Each release wakes everybody who watches the record, and all
/// but one look in vain. So in a crowd everybody stays away at first, for about as long as the others take: then it is
/// his turn, and only a few watch at a time.
class crowd {
 public:
    /// The lock went to `owner`.
    void saw(const record& owner, steady now);
    /// One wait saw so many owners come and go in that time, itself included, while it watched.
    void took(int turns, steady::duration time) noexcept;
    /// The lock was free when one who stayed away looked at it: too many do.
    void was_too_cautious() noexcept;

    /// Whether there are enough of them to matter.
    [[nodiscard]] bool is_one() const noexcept;
    /// For how long to stay away; zero where there are few.
    [[nodiscard]] steady::duration rest(steady now) noexcept;
    /// Those who stay away look at the name meanwhile, all of them together about as often as a waiter can be woken.
    [[nodiscard]] steady::duration between_looks() const noexcept;

 private:
    struct sighting {
        std::uint64_t who;
        steady when;
    };
    std::vector<sighting> owners_;  ///< the last of each, the latest last
    steady::duration turn_{};       ///< what one takes, lately
    double watching_ = 0;           ///< how many watch at a time, lately
};

}  // namespace fslock::core
