// One object of a kind per process.
#pragma once

#include <atomic>

#include "world.hpp"

namespace fslock::os {

/// Grows in every child of a fork: what was made under another number belongs to the parent.
[[nodiscard]] unsigned fork_generation() noexcept;

/// Makes its `T` when first asked for it, and another one in the child of a fork, where the parent's may be locked by a
/// thread that is not there. Takes no lock itself, for the same reason. Nothing is ever destroyed: locks may be
/// released at any late moment.
///
/// Constant-initialised: usable at any time of a program's start and end.
template <class T>
class per_process {
 public:
    T& get() {
        auto* now = current_.load(std::memory_order_acquire);
        while (now == nullptr || now->generation != fork_generation()) {
            auto* const made = new generation_of{fork_generation()};
            if (current_.compare_exchange_strong(now, made, std::memory_order_acq_rel)) return made->value;
            delete made;
        }
        return now->value;
    }

 private:
    struct generation_of {
        explicit generation_of(unsigned g) : generation(g) {}
        const unsigned generation;
        T value;
    };
    std::atomic<generation_of*> current_{nullptr};
};

}  // namespace fslock::os
