// An acquisition that could not be completed at once.
#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <optional>

#include "../core/contend.hpp"
#include "../core/holder.hpp"
#include "due_heap.hpp"
#include "event_sink.hpp"
#include "fslock/acquire.hpp"
#include "pool.hpp"
#include "turn.hpp"

namespace fslock::engine {

/// Where an operation is. Changed under the mutex of its registry.
enum class phase : std::uint8_t {
    unresolved,  ///< its directory has to be looked at, on the pool
    queued,      ///< somebody else of this context has the turn
    ready,       ///< has the turn, not started
    running,     ///< a thread executes its steps
    waiting,     ///< suspended until its due time, or until it is woken
    finished
};

class operation final : public due_item,
                        public core::sleeper,
                        private os::suspension,
                        public std::enable_shared_from_this<operation> {
 public:
    operation(std::shared_ptr<registry> r, core::place where, options o, std::optional<steady> deadline, optional_reporter told);
    ~operation() = default;

    // -- the protocol; by the thread that runs the operation ---------------------------------------------------
    /// Before the first step. `claimed` says that a claim was made in vain; `prepared` is what it left.
    void prepare(turn mine, core::prepared prepared, bool claimed);
    void found(std::shared_ptr<const core::directory> where) { where_.where = std::move(where); }
    /// Runs until it waits or ends.
    void resume(core::wake woken);
    [[nodiscard]] bool done() const noexcept { return task_.done(); }
    [[nodiscard]] steady wake_at() const noexcept { return wake_at_; }
    /// How long the present wait is meant to be; zero for one that must not be cut short.
    [[nodiscard]] steady::duration wait_length() const noexcept { return wait_length_; }
    [[nodiscard]] core::contend_outcome outcome() noexcept;
    /// REQUIRES: the outcome is `owned`.
    [[nodiscard]] core::holder take_holder();

    os::call<core::wake> sleep(core::steady until) override;
    os::call<core::wake> wait_for_change(core::steady until) override;
    os::result<core::watching> watch_record(const std::string& path, const os::file_facts& seen) override;
    os::result<core::watching> watch_process(int pid) override;
    /// Whether what is watched may end the present wait.
    [[nodiscard]] bool listens() const noexcept { return listens_; }
    /// Whether it still watches, or has a file open that it looked at.
    [[nodiscard]] bool has_left_over() const noexcept;
    /// Lets go of that. Once it is done.
    void clean_up() noexcept;

    [[nodiscard]] const core::place& where() const noexcept { return where_; }
    [[nodiscard]] const options& opts() const noexcept { return opts_; }
    [[nodiscard]] const std::optional<steady>& deadline() const noexcept { return deadline_; }
    [[nodiscard]] optional_reporter& told() noexcept { return told_; }
    /// Whether its calls may hang: then its steps are made on the pool.
    [[nodiscard]] bool slow() const noexcept {
        return !where_.where || where_.shared() || opts_.durability == durability::full;
    }
    [[nodiscard]] std::string lane() const;

    const std::shared_ptr<registry> home;

    // -- under the mutex of the registry -----------------------------------------------------------------------
    phase at = phase::unresolved;
    turn mine;
    path_entry* entry = nullptr;  ///< where it is queued, while it is
    std::list<std::shared_ptr<operation>>::iterator in_queue;
    std::list<std::shared_ptr<operation>>::iterator in_registry;
    detail::acquire_completion done_handler;
    std::atomic<bool> cancelled{false};  ///< read by its thread without the mutex
    bool stirred = false;                ///< something happened to what is watched, while nobody listened
    pool::need needed;                   ///< since nobody waits for it, until nothing of it is left on disk

 private:
    void suspended(std::coroutine_handle<> waiting, void* slot) override;

    core::place where_;
    const options opts_;
    const std::optional<steady> deadline_;
    optional_reporter told_;
    bool claimed_ = false;
    std::unique_ptr<core::contender> contender_;  ///< of who has or had the turn
    core::task<core::contend_outcome> task_;
    std::coroutine_handle<> suspended_;
    core::wake* woken_ = nullptr;
    steady wake_at_{};
    steady::duration wait_length_{};
    bool listens_ = false;
    std::optional<int> record_watch_;
    os::file_facts watched_;
    int watched_process_ = 0;  ///< 0: none
};

}  // namespace fslock::engine
