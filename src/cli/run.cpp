// `fslock run`: a command under a lock. One io_context, no threads: the lock, its loss, signals and the end of the
// command are all events of it.
#include <asio/bind_cancellation_slot.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/io_context.hpp>
#include <asio/signal_set.hpp>
#include <asio/steady_timer.hpp>

#include <csignal>
#include <utility>
#include <vector>

#include "child.hpp"
#include "commands.hpp"
#include "exits.hpp"
#include "fslock/fslock.hpp"
#include "notice.hpp"
#include "text.hpp"

namespace cli {
namespace {

using fslock::event_kind;
using fslock::error_code;

constexpr int forwarded[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};

bool is_ignored(int signal) {
    struct sigaction now {};
    return ::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

/// What people see of the owner: the command, as far as it fits and can be shown.
std::string label_of(const run_request& r) {
    if (!r.label.empty()) return r.label;
    constexpr std::size_t most = 80;
    std::string label;
    for (const auto& word : r.command) label += (label.empty() ? "" : " ") + word;
    for (auto& c : label)
        if (c < 0x20 || c > 0x7E) c = '?';
    if (label.size() > most) label = label.substr(0, most - 3) + "...";
    return label;
}

class session {
 public:
    explicit session(const run_request& r) : r_(r), signals_(io_), kill_timer_(io_), notice_(io_, r.quiet) {}

    int go() {
        catch_signals();
        acquire();
        io_.run();
        return status_;
    }

 private:
    void catch_signals() {
        for (const int n : forwarded) {
            // What our caller wants to be ignored (nohup, a job in the background) the command ignores as well.
            if (is_ignored(n)) continue;
            signals_.add(n);
            caught_.push_back(n);
        }
        signals_.add(SIGCHLD);
        caught_.push_back(SIGCHLD);
        next_signal();
    }

    void next_signal() {
        signals_.async_wait([this](error_code aborted, int n) {
            if (aborted) return;
            if (n == SIGCHLD) {
                if (const auto ended = pid_ > 0 ? reap_child(pid_) : std::nullopt) return finish(*ended);
            } else {
                on_signal(n);
            }
            next_signal();
        });
    }

    void on_signal(int n) {
        if (pid_ <= 0) {
            signal_ = n;
            stop_waiting_.emit(asio::cancellation_type::terminal);
        } else if ((n != SIGINT && n != SIGQUIT) || !terminal_signals_us()) {
            send(n);
        }
    }

    /// Never to pid 0, which would be all of our process group.
    void send(int n) const {
        if (pid_ > 0) (void)::kill(pid_, n);
    }

    void acquire() {
        fslock::options o;
        o.label = label_of(r_);
        if (r_.durable) o.durability = fslock::durability::full;
        if (fslock::check(o)) {
            say("a label is UTF-8 of at most 256 bytes; shorten it");
            return end_with(usage);
        }
        o.mode = r_.mode.value_or(o.mode);
        o.heartbeat_interval = r_.heartbeat.value_or(o.heartbeat_interval);
        o.foreign_stale_after = r_.foreign_stale_after.value_or(o.foreign_stale_after);
        o.stale_after = std::min(o.stale_after, o.foreign_stale_after);
        o.foreign_confirm = std::min(o.foreign_confirm, o.foreign_stale_after);
        if (fslock::check(o)) {
            say("there is no such --mode, --heartbeat or --foreign-stale-after; see fslock(1) for their limits");
            return end_with(usage);
        }
        o.on_event = [this](const fslock::event& e) { on_event(e); };
        const auto got = [this](error_code ec, fslock::lock_guard lock) { on_acquired(ec, std::move(lock)); };
        auto done = asio::bind_cancellation_slot(stop_waiting_.slot(), got);
        if (r_.timeout) {
            fslock::async_try_acquire(io_, r_.lock, *r_.timeout, o, std::move(done));
        } else {
            fslock::async_acquire(io_, r_.lock, o, std::move(done));
        }
    }

    void on_event(const fslock::event& e) {
        if (e.kind == event_kind::waiting) {
            notice_.waiting_for(fslock::to_string(e));
            return;
        }
        // Who was told to stop writing has to hear when it may go on.
        const bool all_clear = e.kind == event_kind::beat_recovered && std::exchange(at_risk_, false);
        at_risk_ = at_risk_ || e.kind == event_kind::at_risk;
        if (e.kind == event_kind::at_risk || all_clear || r_.verbose) say(fslock::to_string(e));
    }

    void on_acquired(error_code ec, fslock::lock_guard lock) {
        notice_.end();
        if (signal_ != 0) return end_with(by_signal + signal_);
        if (ec) return end_with(complain(r_.lock, ec));
        if (!lock) return give_up();
        lock_ = std::move(lock);
        start();
    }

    void give_up() {
        if (!r_.quiet) {
            auto text = r_.lock + ": not acquired";
            if (const auto info = look(); info && !info->malformed)
                text += ": held by " + fslock::to_string(info->owner) + "; see `fslock status`";
            say(text);
        }
        end_with(r_.conflict_status);
    }

    [[nodiscard]] std::optional<fslock::lock_info> look() const {
        error_code ignored;
        return fslock::inspect(r_.lock, ignored);
    }

    void start() {
        child_setup setup;
        setup.command = r_.command;
        setup.variables = {"FSLOCK_PATH=" + lock_.path().native(),
                           "FSLOCK_WRITER_EPOCH=" + std::string(lock_.writer_epoch())};
        setup.signals = caught_;
        setup.dies_with_us = r_.on_lost == on_lost::kill;
        if (const auto error = start_child(setup, pid_)) {
            pid_ = 0;
            return finish(not_started(error));
        }
        lock_.async_wait_lost([this](error_code aborted) {
            if (!aborted && pid_ > 0) on_loss();
        });
    }

    int not_started(error_code error) const {
        const bool missing = error == std::errc::no_such_file_or_directory;
        say(r_.command[0] + ": " +
            (missing ? "command not found; check its name and PATH" : error.message() + "; check that it can be executed"));
        return missing ? not_found : not_executable;
    }

    void on_loss() {
        const bool kills = r_.on_lost == on_lost::kill;
        lost_ = true;
        say(r_.lock + ": the lock was lost: its record was removed or replaced; " +
            (kills ? "ending the command" : "the command goes on without it"));
        if (!kills) return;
        send(SIGTERM);
        kill_timer_.expires_after(r_.kill_after);
        kill_timer_.async_wait([this](error_code aborted) {
            if (!aborted) send(SIGKILL);
        });
    }

    /// The command has ended, or there was none.
    void finish(int status) {
        pid_ = 0;
        error_code ec;
        lock_.release(ec);
        if (ec && !lost_) (void)complain(r_.lock, ec);
        const bool half_done = lost_ && r_.on_lost == on_lost::kill && status == success;
        end_with(half_done ? unavailable : status);
    }

    void end_with(int status) {
        status_ = status;
        kill_timer_.cancel();
        signals_.cancel();
    }

    const run_request& r_;
    asio::io_context io_{1};
    asio::signal_set signals_;
    asio::steady_timer kill_timer_;
    asio::cancellation_signal stop_waiting_;
    notice notice_;
    fslock::lock_guard lock_;
    std::vector<int> caught_;
    pid_t pid_ = 0;
    int signal_ = 0;
    bool lost_ = false;
    bool at_risk_ = false;
    int status_ = system_failure;
};

}  // namespace

int run(const run_request& r) { return session(r).go(); }

}  // namespace cli
