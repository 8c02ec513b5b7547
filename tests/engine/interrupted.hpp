// Small programs that are interrupted: by the end of their context, by a cancellation, by a stop; and looks at
// what is left of them.
#pragma once

#include <asio/associated_executor.hpp>
#include <asio/awaitable.hpp>
#include <asio/bind_cancellation_slot.hpp>
#include <asio/bind_executor.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/io_context.hpp>
#include <asio/use_awaitable.hpp>
#include <atomic>
#include <deque>
#include <functional>
#include <iosfwd>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "crafted.hpp"
#include "fslock/fslock.hpp"
#include "support/directory.hpp"

namespace interrupted {

using namespace support;
namespace asio = fslock::asio;
using fslock::error_code;
using fslock::lock_guard;
using std::filesystem::path;

/// The operations of one run, and how their handlers are called. Every handler, coroutine and listener of the run
/// has a share of it, so its `use_count` says when the last of them is gone. Thread-safe.
class trace {
 public:
    /// One operation.
    struct step {
        std::mutex beginning;  ///< a signal must not be emitted while its slot is being filled
        asio::cancellation_signal signal;
        std::atomic<int> calls{0};
    };

    explicit trace(int players) noexcept : players_(players) {}

    [[nodiscard]] step& new_step();
    /// The handler of `s` runs. Inside the call that began the operation that is wrong, and so is it anywhere but
    /// at home.
    void called(step& s);
    /// An operation was begun: it can be cancelled from now on.
    void begun() noexcept { ++begun_; }
    void wrong(const std::string& what);
    void player_ended() noexcept { ++ended_; }

    /// Cancels whatever was begun. From now on an operation may be aborted. From any thread.
    void cancel(asio::cancellation_type how);
    [[nodiscard]] bool is_cancelled() const noexcept { return cancelled_; }
    /// Whether every player came to the end of its part.
    [[nodiscard]] bool is_over() const noexcept { return ended_ == players_; }
    [[nodiscard]] int calls() const noexcept { return calls_; }
    /// Whether every player has begun an operation, if each has but one.
    [[nodiscard]] bool has_begun() const noexcept { return begun_ == players_; }

    /// What went wrong. REQUIRES: nobody else has the trace any more.
    [[nodiscard]] std::string problems(bool all_called);

    /// Says whether the caller is where handlers have to run. Must outlive the context of the run.
    std::function<bool()> at_home;

    /// While one exists on the calling thread, the initiating function of an operation runs there.
    struct initiating {
        initiating() noexcept { ++depth; }
        initiating(const initiating&) = delete;
        initiating& operator=(const initiating&) = delete;
        ~initiating() { --depth; }
        static thread_local int depth;
    };

 private:
    const int players_;
    std::atomic<int> begun_{0};
    std::atomic<int> ended_{0};
    std::atomic<int> calls_{0};
    std::atomic<bool> cancelled_{false};
    std::mutex mutex_;
    std::deque<step> steps_;
    std::string problems_;
};

/// Notes that it is called, and passes on what it is called with as one value.
template <class Result, class Handler>
class noting {
 public:
    noting(std::shared_ptr<trace> t, trace::step& s, Handler handler)
        : trace_(std::move(t)), step_(&s), handler_(std::move(handler)) {}
    template <class... Args>
    void operator()(Args&&... args) {
        trace_->called(*step_);
        handler_(Result(std::forward<Args>(args)...));
    }

 private:
    std::shared_ptr<trace> trace_;
    trace::step* step_;
    Handler handler_;
};

/// Begins an operation, `start(handler)`, whose handler can be cancelled through `t`.
template <class Result, class Start, class Handler>
void begin(const std::shared_ptr<trace>& t, const asio::any_io_executor& io, Start start, Handler handler) {
    auto& notes = *t;  // `t` itself may go as soon as the operation has begun
    auto& step = notes.new_step();
    const auto executor = asio::get_associated_executor(handler, io);
    noting<Result, Handler> noted(t, step, std::move(handler));
    const std::lock_guard lock(step.beginning);
    const trace::initiating now;
    start(asio::bind_cancellation_slot(step.signal.slot(), asio::bind_executor(executor, std::move(noted))));
    notes.begun();
}

/// What an acquisition came to.
class got {
 public:
    got() noexcept = default;
    got(error_code ec, lock_guard l) noexcept : error(ec), lock(std::move(l)) {}
    /// Neither a lock nor an error: it was not to be had.
    [[nodiscard]] bool nothing() const noexcept { return !error && !lock; }

    error_code error;
    lock_guard lock;
};

/// What an `async_verify` said.
class said {
 public:
    said(error_code ec, bool ours) noexcept : error(ec), yes(ours) {}
    error_code error;
    bool yes;
};

/// What is there before a run and outlives its context: a directory, other owners, records written by hand.
class setting {
 public:
    /// Has the directory classified, unless it has to be new to the library.
    void know_directory() const;
    /// A lock of another context of this process.
    void hold(const std::string& name);
    /// A file that is there. What the library finds dead it may remove; all else must stay as it is.
    void craft(const std::string& name, const std::string& text, bool must_stay = false);
    void craft(const std::string& name, const crafted_record& r) { craft(name, r.line()); }

    // -- by the players
    void release_held();
    void remove(const std::string& name);
    /// Storage that outlives the context.
    void keep(lock_guard lock);

    /// Looks around after the run, when all that it had should be gone.
    [[nodiscard]] std::string left_behind();

    const directory dir;

 private:
    struct file {
        std::string text;
        bool must_stay;
    };
    [[nodiscard]] std::string unexpected() const;

    std::mutex mutex_;
    std::vector<lock_guard> held_;
    std::vector<lock_guard> kept_;
    std::map<std::string, file> crafted_;
};

/// What a player of a scenario has.
class stage {
 public:
    stage(asio::any_io_executor of_player, asio::any_io_executor of_locks, setting& s, std::shared_ptr<trace> t,
          int number)
        : io(std::move(of_player)), locks(std::move(of_locks)), there(&s), told(std::move(t)), player(number) {}

    [[nodiscard]] path at(const std::string& name) const { return there->dir / name; }
    /// With a pace that adds handlers of the library's own.
    [[nodiscard]] fslock::options quick() const;
    /// The same, and calls `what` when `kind` is told.
    [[nodiscard]] fslock::options quick(fslock::event_kind kind, std::function<void()> what) const;

    // Each looks at what it gets; an operation may be aborted only if it was cancelled.
    [[nodiscard]] asio::awaitable<got> acquire(path p, fslock::options o) const;
    [[nodiscard]] asio::awaitable<got> acquire(std::string name) const { return acquire(at(name), quick()); }
    [[nodiscard]] asio::awaitable<got> try_acquire(path p, milliseconds limit, fslock::options o) const;
    [[nodiscard]] asio::awaitable<said> verify(lock_guard& lock) const;
    [[nodiscard]] asio::awaitable<error_code> release(lock_guard lock) const;
    [[nodiscard]] asio::awaitable<void> pause(milliseconds time) const;

    /// Begins `start(handler)`, which comes to `what(result)` in a handler instead of a coroutine.
    template <class Result, class Start, class What>
    void begin(Start start, What what) const {
        interrupted::begin<Result>(told, io, std::move(start), std::move(what));
    }
    /// Unless the run was cancelled, `condition` has to hold.
    void expect(bool condition, const char* what) const;
    void check(got& g) const;

    asio::any_io_executor io;     ///< where it runs
    asio::any_io_executor locks;  ///< where its locks live
    setting* there;
    std::shared_ptr<trace> told;
    int player;
};

/// A behaviour of the library as a small program.
struct scenario {
    const char* name;
    void (*set)(setting&);
    asio::awaitable<void> (*play)(stage);
    int players = 1;          ///< who all play at once, each with its number
    bool is_dry = true;       ///< nothing is left to do for its context in the end
    bool needs_linux = false;  ///< records that only Linux can judge
};
std::ostream& operator<<(std::ostream& out, const scenario& s);

/// Every behaviour that the tests of the engine exercise.
[[nodiscard]] const std::vector<scenario>& scenarios();
/// Waits that nothing but a cancellation ends; each player has one.
[[nodiscard]] const std::vector<scenario>& endless_scenarios();
/// A process that lives as long as this one.
[[nodiscard]] pid_t living_process();

/// One run of a scenario, in a context of the caller's: begin with `play`, and look at it with `problems` when the
/// context is gone.
class run {
 public:
    explicit run(const scenario& s);
    /// Starts the players on `executor`. It has to be `at_home` where handlers have to run.
    template <class Executor>
    void play(const Executor& executor) {
        trace_->at_home = [&executor] { return executor.running_in_this_thread(); };
        start(executor, executor);
    }
    /// The same, with locks that live elsewhere: there listeners are called.
    template <class Executor>
    void play(const Executor& executor, const Executor& locks) {
        trace_->at_home = [&] { return executor.running_in_this_thread() || locks.running_in_this_thread(); };
        start(executor, locks);
    }
    [[nodiscard]] bool is_over() const noexcept { return trace_->is_over(); }
    /// Nothing that still has to come will end by itself.
    [[nodiscard]] bool is_stuck() const noexcept { return !scenario_.is_dry && is_over(); }
    [[nodiscard]] trace& told() const noexcept { return *trace_; }
    /// What is not as it has to be, or empty. A whole run is one where every player ended and every handler ran.
    [[nodiscard]] std::string problems(bool whole);

 private:
    void start(const asio::any_io_executor& io, const asio::any_io_executor& locks);

    const scenario& scenario_;
    setting setting_;
    std::size_t descriptors_ = 0;
    std::shared_ptr<trace> trace_;
};

/// Whether `s` can be played here; says so if not.
[[nodiscard]] bool can_be_played(const scenario& s);

inline constexpr int to_the_end = std::numeric_limits<int>::max();
/// Runs `io` for at most `handlers` handlers. Whether that was to the end: nothing is left to do, or nothing that
/// ends.
[[nodiscard]] bool run_some(asio::io_context& io, const run& r, int handlers);

}  // namespace interrupted
