// What is known of the directories that have locks in them.
#pragma once

#include <memory>
#include <mutex>
#include <string_view>
#include <unordered_map>

#include "../core/place.hpp"
#include "../core/task.hpp"

namespace fslock::engine {

/// A directory is looked at once, away from the caller's thread, since a dead mount hangs every call; from then on
/// its class is known by its path, for as long as the path leads to the same directory. Process-wide, thread-safe.
class directories {
 public:
    static directories& instance();

    /// What was learned of `path`, or null.
    [[nodiscard]] std::shared_ptr<const core::directory> known(std::string_view path);
    /// Looks, and keeps what it finds. Blocks.
    [[nodiscard]] os::result<std::shared_ptr<const core::directory>> look(os::world& w, std::string_view path);

 private:
    std::mutex mutex_;
    std::unordered_map<std::string_view, std::shared_ptr<const core::directory>> by_path_;  // keys: views into values
};

}  // namespace fslock::engine
