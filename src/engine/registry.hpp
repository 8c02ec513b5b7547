// All locks of one execution context: held, contended for and waited for.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "due_heap.hpp"
#include "fslock/acquire.hpp"
#include "held_lock.hpp"
#include "operation.hpp"
#include "turn.hpp"
#include "watcher.hpp"

#include FSLOCK_ASIO_HEADER(steady_timer.hpp)

namespace fslock::engine {

/// A `verify` or a `release` on the pool: one of the two has a handler.
struct slow_step {
    detail::completion_ptr<error_code, bool> verified;
    detail::completion_ptr<error_code> released;
};

/// Somebody who waits for the loss of a lock; in the registry of that lock, under its mutex.
struct lost_wait {
    explicit lost_wait(std::shared_ptr<held_lock> l) noexcept : lock(std::move(l)) {}
    const std::shared_ptr<held_lock> lock;  ///< or null
    detail::completion_ptr<error_code> done;
};

/// Its state is under one mutex, which is never held over a call of the system or of the user. What is posted to the
/// context is posted under it, so that a thread of another context cannot post to one that is being destroyed.
///
/// Outlives its context: guards and jobs on the pool keep it.
class registry : public std::enable_shared_from_this<registry> {
 public:
    /// `executor` is that of the context itself: no strand, which might die before the context does. Makes the timer,
    /// so that what cannot be had (EMFILE) is missed before anything is published, and throws it.
    explicit registry(asio::any_io_executor executor);

    /// The first step of an acquisition, made here and now where that cannot hang.
    [[nodiscard]] detail::started start(const asio::any_io_executor& io, std::filesystem::path path, options o,
                                        detail::wait_limit limit);
    /// The rest of it. `done` is completed or destroyed, never called in here.
    void submit(const std::shared_ptr<operation>& op, detail::acquire_completion done);
    void cancel(const std::shared_ptr<operation>& op);

    /// Stops the heartbeats of `lock`, which is lost or released.
    void unhold(held_lock& lock) noexcept;
    /// The context has no more work with `lock`, whose guard is gone.
    void end_work(held_lock& lock) noexcept;
    /// Completes when `wait->lock` is lost or given up.
    void await_loss(const std::shared_ptr<lost_wait>& wait, detail::completion_ptr<error_code> done);
    void cancel(const std::shared_ptr<lost_wait>& wait);
    /// `lock` is not ours any more: whoever waits for that is told. `unhold` has to follow.
    void lose(held_lock& lock) noexcept;
    /// Ends all waits for the loss of `lock`.
    void end_loss_waits(const held_lock& lock, error_code ec) noexcept;

    /// Has the kernel tell `op` of what happens to a record, or of the end of a process.
    [[nodiscard]] os::result<int> watch_record(operation& op, const std::string& path);
    [[nodiscard]] std::error_code watch_process(operation& op, int pid);
    void unwatch(operation& op, std::optional<int> record, bool process) noexcept;
    /// The turn at `entry` has ended.
    void pass_on(path_entry& entry) noexcept;

    /// Keeps the handler of a step on the pool, which must not outlive the context there; one that comes after the end
    /// of the context is only kept for `finish`.
    [[nodiscard]] std::shared_ptr<slow_step> park(slow_step step);
    void finish(const std::shared_ptr<slow_step>& step, error_code ec, bool ours) noexcept;

    /// Posts the next report of `sink`, unless the context is gone.
    void post_delivery(const std::shared_ptr<event_sink>& sink);
    /// Made before a fork, seen by the child: nothing here is the child's.
    [[nodiscard]] bool inherited() const noexcept;
    [[nodiscard]] asio::any_io_executor executor() const;

    /// Around a fork that the context is told of.
    void before_fork() noexcept { watcher_.before_fork(); }
    void after_fork_in_parent();
    void after_fork_in_child() noexcept;

    /// The context is going: drops every handler without calling it, and takes back what is on disk.
    void shutdown() noexcept;

 private:
    struct key_hash {
        using is_transparent = void;
        std::size_t operator()(const path_key& k) const noexcept;
        std::size_t operator()(const struct path_key_view& k) const noexcept;
    };
    struct key_equal {
        using is_transparent = void;
        template <class A, class B>
        bool operator()(const A& a, const B& b) const noexcept {
            return a.device == b.device && a.inode == b.inode && std::string_view(a.name) == b.name;
        }
    };
    /// Heartbeats, polls and deadlines, and what wakes for them.
    struct timeline {
        due_heap due;
        std::vector<steady> ticks;     ///< when one comes, the next last; an alarm cannot be withdrawn
        steady::duration suspended{};  ///< the machine, so far
        [[nodiscard]] bool needs_tick() const noexcept {
            return !due.empty() && (ticks.empty() || due.earliest() < ticks.back());
        }
    };
    /// What became due, or was stirred.
    struct called {
        std::vector<std::shared_ptr<held_lock>> holders;
        std::vector<std::shared_ptr<held_lock>> unwatched;
        std::vector<std::shared_ptr<operation>> waiters;
        std::vector<std::shared_ptr<void>> ended;  ///< what must not die under the mutex
        bool resumed = false;                      ///< the machine was suspended
    };
    struct resolving {
        std::size_t operations = 0;
        std::string lane;
    };
    struct idle_entry {
        path_entry* entry;
        steady since;
    };

    // Under the mutex.
    path_entry& entry_of(const os::file_facts& directory, std::string_view name);
    void note_idle(path_entry& entry);
    void forget_idle(std::vector<idle_entry>& idle, steady until);
    void hold(held_lock& lock);
    void end_work_locked(held_lock& lock) noexcept;
    /// On its timeline; `wake_in_time` has to follow.
    template <class Item>
    void put(Item& item, steady when);
    void schedule(operation& op, steady when) {
        put(op, when);
        wake_in_time();
    }
    void set_alarm();
    void wake_in_time() {
        want_settle();
        set_alarm();
    }
    void list_sink(const std::shared_ptr<event_sink>& sink);
    void want_settle();
    [[nodiscard]] bool needs_settling() const noexcept;
    [[nodiscard]] const std::string& lane_to_resolve(const operation& op);
    void resolved(const std::shared_ptr<operation>& op) noexcept;
    /// Gives `op` the turn if it is free, else a place in the queue.
    [[nodiscard]] bool take_or_queue(const std::shared_ptr<operation>& op);
    /// Takes `op` off all lists and posts its handler, if it still has one; else `lock` stays with the caller.
    void complete_locked(const std::shared_ptr<operation>& op, error_code ec, lock_guard& lock) noexcept;
    void give_up(const std::shared_ptr<operation>& op, error_code ec) noexcept;
    static void need_before_exit(operation& op);
    void schedule_give_up(const std::shared_ptr<operation>& op);
    void leave_queue(const std::shared_ptr<operation>& op) noexcept;
    /// Completes them; what is returned has to die without the mutex.
    [[nodiscard]] std::vector<std::shared_ptr<lost_wait>> take_loss_waits(const held_lock& lock, error_code ec) noexcept;
    void collect_due(timeline& of, called& into);
    void collect_beat(timeline& of, held_lock& held, steady now, called& into);
    void collect_wait(std::shared_ptr<operation> op, called& into);
    void stir(const std::shared_ptr<due_item>& item, called& into);

    // Without it.
    [[nodiscard]] std::shared_ptr<const core::directory> ready_directory(const core::lock_name& name,
                                                                         const options& o, std::error_code& ec);
    [[nodiscard]] std::shared_ptr<held_lock> make_held(turn mine, core::holder on_disk, const options& o,
                                                       optional_reporter told);
    void claim_at_once(detail::started& out, turn mine, core::place where, options o, std::optional<steady> deadline,
                       optional_reporter told);
    void resolve(const std::shared_ptr<operation>& op, const std::string& lane) noexcept;
    void resolution_failed(const std::shared_ptr<operation>& op, error_code ec) noexcept;
    void admit(const std::shared_ptr<operation>& op, std::shared_ptr<const core::directory> where,
               const std::string& lane) noexcept;
    static void run_in_turn(std::shared_ptr<operation> op);
    void run(const std::shared_ptr<operation>& op, core::wake woken) noexcept;
    void run_here(const std::shared_ptr<operation>& op, core::wake woken) noexcept;
    void finish(const std::shared_ptr<operation>& op) noexcept;
    void clean_up_later(const std::shared_ptr<operation>& op) noexcept;
    void complete(const std::shared_ptr<operation>& op, error_code ec, lock_guard lock) noexcept;
    void report_queued(const std::shared_ptr<operation>& op);
    void settle();
    void tick(timeline& of, steady when);
    void beat(const std::shared_ptr<held_lock>& held);
    void watch(const std::shared_ptr<held_lock>& held) noexcept;
    void unwatch(const watches& w, const held_lock& held) noexcept;
    void changed(error_code ec);
    void process_ended(const std::shared_ptr<operation>& op);
    void answer(called& what);

    const unsigned generation_;
    mutable std::mutex mutex_;
    asio::any_io_executor executor_;
    std::optional<asio::steady_timer> timer_;
    watcher watcher_;
    bool settle_posted_ = false;
    bool shut_ = false;
    timeline here_;  ///< by the timer of the context
    timeline away_;  ///< by the alarm of the process: for locks whose calls may hang, whatever the context does
    std::size_t held_away_ = 0;   ///< locks there whose guards live
    asio::any_io_executor work_;  ///< tracked while there are any, as the timer is for others; see `settle`
    std::unordered_map<path_key, path_entry, key_hash, key_equal> entries_;
    std::vector<idle_entry> idle_;           ///< nothing is known of them: forgotten at the next settling
    std::vector<idle_entry> idle_but_seen_;  ///< what was seen there counts for a while
    std::list<std::shared_ptr<operation>> operations_;
    std::vector<std::weak_ptr<event_sink>> sinks_;
    std::size_t prune_sinks_at_ = 64;
    std::unordered_map<std::string, resolving> resolving_;  ///< directories that are looked at
    std::list<std::shared_ptr<slow_step>> slow_steps_;
    std::unordered_map<const held_lock*, std::vector<std::shared_ptr<lost_wait>>> loss_waits_;
    std::uint32_t spread_ = 0;
};

/// The registry of the context behind `io`; made when first asked for.
[[nodiscard]] std::shared_ptr<registry> registry_of(const asio::any_io_executor& io);

}  // namespace fslock::engine
