// Whose turn it is at one path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "../core/contender.hpp"

namespace fslock::engine {

class held_lock;
class operation;
class registry;

/// One lock of one context. Paths that lead to the same directory are the same lock.
struct path_key {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    std::string name;
};

/// What happens at one path, in this context: one at a time has the turn, and talks to the disk; the others wait in
/// memory, first come, first served.
struct path_entry {
    const path_key* key = nullptr;
    bool taken = false;           ///< somebody has the turn
    bool idle_noted = false;      ///< waits to be forgotten
    held_lock* holder = nullptr;  ///< who has the turn, if it holds the lock
    std::list<std::shared_ptr<operation>> queue;
    std::unique_ptr<core::sightings> seen;  ///< touched only by who has the turn; null: nothing

    [[nodiscard]] core::sightings& sightings() {
        if (!seen) seen = std::make_unique<core::sightings>();
        return *seen;
    }
};

/// The right to claim, contend for and hold the lock of one entry. Passed on to the next in line when it ends.
class turn {
 public:
    turn() noexcept = default;
    turn(std::shared_ptr<registry> home, path_entry& entry) noexcept : home_(std::move(home)), entry_(&entry) {}
    turn(turn&& other) noexcept
        : home_(std::move(other.home_)), entry_(std::exchange(other.entry_, nullptr)) {}
    turn& operator=(turn&& other) noexcept {
        if (this != &other) {
            pass_on();
            home_ = std::move(other.home_);
            entry_ = std::exchange(other.entry_, nullptr);
        }
        return *this;
    }
    ~turn() { pass_on(); }

    explicit operator bool() const noexcept { return entry_ != nullptr; }
    [[nodiscard]] path_entry& entry() const noexcept { return *entry_; }
    void pass_on() noexcept;

 private:
    std::shared_ptr<registry> home_;
    path_entry* entry_ = nullptr;
};

}  // namespace fslock::engine
