// What functions that block the calling thread have in common.
#pragma once

#include <filesystem>
#include <thread>

#include "../core/contender.hpp"
#include "directories.hpp"

namespace fslock::engine {

/// Has no event loop to wait on: waits for moments only.
class blocking_sleeper final : public core::deaf_sleeper {
 public:
    os::call<core::wake> sleep(core::steady until) override {
        std::this_thread::sleep_until(until);
        return core::wake::due;
    }
};

/// Has nobody to tell.
class silent_reporter final : public core::reporter {
 public:
    void report(event) override {}
};

/// The place of the lock at `path`, whose directory is looked at. Errors: those of `core::split` and of that look.
[[nodiscard]] inline os::result<core::place> place_at(os::world& w, const std::filesystem::path& path) {
    core::place where;
    if (const auto error = core::split(path, where.lock)) return error;
    auto directory = directories::instance().look(w, where.lock.directory());
    if (!directory) return directory.error();
    where.where = std::move(*directory);
    return where;
}

}  // namespace fslock::engine
