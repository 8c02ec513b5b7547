// What a run with a fault plays on: a directory with a lock in it, perhaps somebody who holds it, and the looks
// around afterwards.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "core/breaking.hpp"
#include "core/contend.hpp"
#include "core/holder.hpp"
#include "faulty_world.hpp"
#include "support/directory.hpp"

namespace faults {

namespace core = fslock::core;
using namespace std::chrono_literals;

/// On which kind of filesystem, and how a record becomes visible there.
struct ground {
    const char* name;
    os::fs_class kind = os::fs_class::local;
    core::publishing method = core::publishing::unnamed;
    fslock::durability durability = fslock::durability::relaxed;
    fslock::witness witness = fslock::witness::automatic;
};

[[nodiscard]] std::span<const ground> grounds() noexcept;

class stage {
 public:
    explicit stage(const ground& g);

    // -- before
    /// An owner of ours with its own world, in which nothing fails.
    void hold();
    void release_held();
    /// The record of an owner who was killed; with a witness that nobody holds, or of a process that is gone.
    void put_dead(const std::string& path, bool guarded);
    void put(const std::string& path, const std::string& text, std::chrono::seconds age);
    /// The record of `owner` is replaced by a copy of itself, as a backup would.
    void replace_by_copy();

    [[nodiscard]] bool is_held() const noexcept { return held_.has_value(); }
    [[nodiscard]] core::contend_outcome contend(faulty_world& w, std::optional<std::chrono::milliseconds> limit);
    /// Removes the lock that `hold` made, by order.
    [[nodiscard]] core::break_outcome break_held(faulty_world& w);
    /// Lets `contend` have the lock; there must be no fault.
    void own(faulty_world& w);

    // -- afterwards; "" or what is wrong
    /// What `contend` came to.
    [[nodiscard]] std::string look_at(const core::contend_outcome& out, faulty_world& w);
    /// The lock of `h` is what it has to be, and can be given back.
    [[nodiscard]] std::string look_at_owner(core::holder& h, faulty_world& w);
    /// Nothing is left but what could not be removed, and that keeps nobody from the lock.
    [[nodiscard]] std::string look_around(faulty_world& w);

    support::directory dir;
    core::place where;
    fslock::options opts;
    core::prepared mine;                ///< what `contend` made
    std::optional<core::holder> owner;  ///< by `own`
    std::size_t descriptors = 0;

 private:
    [[nodiscard]] std::string left_behind(faulty_world& w) const;

    faulty_world plain_;
    core::sightings seen_;
    std::optional<core::holder> held_;
    bool broken_ = false;  ///< it may have lost its lock
    std::map<std::string, std::string> crafted_;  ///< by path
};

/// How many descriptors this process has.
[[nodiscard]] std::size_t open_descriptors();

/// A use of the lock, calls of which fail.
struct scenario {
    const char* name;
    void (*set)(stage&);                               ///< without faults
    std::string (*play)(stage&, faulty_world&);        ///< with them; "" or what is wrong
    bool (*possible)(const ground&) = [](const ground&) { return true; };
};
inline std::ostream& operator<<(std::ostream& out, const scenario& s) { return out << s.name; }

[[nodiscard]] std::span<const scenario> scenarios() noexcept;

}  // namespace faults
