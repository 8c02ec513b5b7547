// The `fslock` program: what is asked for, in words.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <iostream>

#include "commands.hpp"
#include "exits.hpp"

namespace cli {
namespace {

/// Seconds, with a fraction. What is not positive is no wait at all; what is longer than a century is that.
std::chrono::milliseconds milliseconds_of(double seconds) {
    constexpr double longest = 100.0 * 365 * 86'400;
    if (!(seconds > 0)) return std::chrono::milliseconds(0);
    return std::chrono::milliseconds(std::llround(std::min(seconds, longest) * 1000));
}

/// What is wrong with permissions in octal digits; empty: nothing.
std::string is_mode(const std::string& digits) {
    const bool octal = digits.find_first_not_of("01234567") == std::string::npos;
    return octal && digits.size() >= 3 && digits.size() <= 4 ? "" : "--mode takes octal digits, as in 0640";
}

/// Options that waiting commands share, and what they were given.
struct waiting_options {
    void add_to(CLI::App& command, const char* what_quiet_is) {
        command.add_option("lock", lock, "Path of the lock")->required();
        const auto* limit = command.add_option("-w,--timeout", seconds, "Give up after so many seconds");
        command.add_flag("-n,--no-wait", no_wait, "Give up at once")->excludes(const_cast<CLI::Option*>(limit));
        command.add_option("-E,--conflict-exit-code", conflict, "Exit with this when giving up (1)")
            ->check(CLI::Range(0, 255));
        command.add_flag("-q,--quiet", quiet, what_quiet_is);
    }
    void give(waiting_request& r) const {
        r.lock = lock;
        r.conflict_status = conflict;
        r.quiet = quiet;
        if (seconds) r.timeout = milliseconds_of(*seconds);
        if (no_wait) r.timeout = std::chrono::milliseconds(0);
    }
    std::string lock;
    std::optional<double> seconds;
    bool no_wait = false;
    int conflict = 1;
    bool quiet = false;
};

/// What follows `--`, which is the command whatever it looks like.
std::vector<std::string> take_command(std::vector<std::string>& words) {
    const auto at = std::find(words.begin(), words.end(), "--");
    if (at == words.end()) return {};
    std::vector<std::string> command(at + 1, words.end());
    words.erase(at, words.end());
    return command;
}

class program {
 public:
    program() {
        app_.name("fslock");
        app_.set_version_flag("-V,--version", "fslock " FSLOCK_VERSION);
        app_.require_subcommand(1);
        app_.footer("Examples:\n"
                    "  fslock run /srv/app/nightly.lock -- ./nightly --all\n"
                    "  fslock run --no-wait /tmp/sync.lock rsync -a src/ dst/ || echo 'already running'\n"
                    "  fslock status /srv/app\n\n"
                    "`fslock COMMAND --help` says more; so does fslock(1).");
        add_run();
        add_wait();
        add_status();
        add_break();
        add_sweep();
        add_doctor();
    }

    int go(std::vector<std::string> words) {
        if (!words.empty() && words[0] == "run") run_.command = take_command(words);
        if (!words.empty() && !words[0].starts_with("-") && !is_command(words[0])) {
            say("there is no command " + words[0] + "; see `fslock --help`");
            return usage;
        }
        std::reverse(words.begin(), words.end());
        try {
            app_.parse(words);
        } catch (const CLI::Success& e) {
            return app_.exit(e);
        } catch (const CLI::ParseError& e) {
            say(std::string(e.what()) + "; see `fslock " + asked_for() + "--help`");
            return usage;
        }
        return chosen_();
    }

 private:
    [[nodiscard]] bool is_command(const std::string& word) const {
        const auto all = app_.get_subcommands([](const CLI::App*) { return true; });
        return std::any_of(all.begin(), all.end(), [&](const auto* c) { return c->get_name() == word; });
    }
    [[nodiscard]] std::string asked_for() const {
        for (const auto* command : app_.get_subcommands()) return command->get_name() + ' ';
        return {};
    }

    CLI::App& add(const char* name, const char* what, const char* examples, int (program::*action)()) {
        auto& command = *app_.add_subcommand(name, what);
        command.footer(examples);
        command.callback([this, action] { chosen_ = [this, action] { return (this->*action)(); }; });
        return command;
    }

    void add_run() {
        auto& c = add("run", "Run a command under a lock",
                      "After the lock, and best after --, follow the command and its arguments.\n"
                      "The command sees FSLOCK_PATH and FSLOCK_WRITER_EPOCH, and no descriptor of the\n"
                      "lock. Exits with its status, 128+N if signal N ended it, 126 or 127 if it could not be run, with\n"
                      "that of -E (1) if the lock was not to be had, and with 69 if it was lost and the command,\n"
                      "which was told to end, says that all went well.\n\n"
                      "Examples:\n"
                      "  fslock run /tmp/backup.lock -- ./backup --full\n"
                      "  fslock run --timeout 30 -E 75 /tmp/backup.lock ./backup",
                      &program::do_run);
        run_waiting_.add_to(c, "Do not say for whom it waits, nor that it gives up");
        c.add_option("--label", run_.label, "What status shows of the owner (the command)");
        c.add_option("--on-lost", on_lost_, "When the lock is lost: kill the command, or warn (kill)")
            ->check(CLI::IsMember({"kill", "warn"}));
        c.add_option("--kill-after", kill_after_, "Seconds between SIGTERM and SIGKILL (10)");
        c.add_flag("--durable", run_.durable, "Sync the record: the lock survives a power loss as a record");
        c.add_option("--mode", mode_, "Who may read and write the record, in octal digits (600)")->check(is_mode);
        c.add_option("--heartbeat", heartbeat_, "Seconds between heartbeats (5)")->check(CLI::PositiveNumber);
        c.add_option("--foreign-stale-after", stale_after_, "Seconds of silence that mean death on another host (75)")
            ->check(CLI::PositiveNumber);
        c.add_flag("-v,--verbose", run_.verbose, "Say everything that happens to the lock");
        c.prefix_command();
    }
    int do_run() {
        run_waiting_.give(run_);
        const auto rest = app_.get_subcommand("run")->remaining();
        if (!rest.empty() && rest.front().starts_with("-")) return unknown_option(rest.front());
        run_.command.insert(run_.command.begin(), rest.begin(), rest.end());
        if (run_.command.empty()) {
            say("no command to run; give one: fslock run " + run_.lock + " -- COMMAND");
            return usage;
        }
        run_.on_lost = on_lost_ == "warn" ? on_lost::warn : on_lost::kill;
        run_.kill_after = milliseconds_of(kill_after_);
        if (!mode_.empty()) run_.mode = static_cast<unsigned>(std::stoul(mode_, nullptr, 8));
        if (heartbeat_) run_.heartbeat = milliseconds_of(*heartbeat_);
        if (stale_after_) run_.foreign_stale_after = milliseconds_of(*stale_after_);
        return run(run_);
    }
    static int unknown_option(const std::string& word) {
        say("there is no option " + word + "; put -- before the command, or see `fslock run --help`");
        return usage;
    }

    void add_wait() {
        auto& c = add("wait", "Wait until nobody has a lock, without taking it",
                      "A dead owner counts as nobody.\n\nExample:\n  fslock wait --timeout 60 /tmp/backup.lock && ls",
                      &program::do_wait);
        wait_waiting_.add_to(c, "Do not say for whom it waits");
    }
    int do_wait() {
        waiting_request r;
        wait_waiting_.give(r);
        return cli::wait(r);
    }

    void add_status() {
        auto& c = add("status", "Show who has a lock, or the locks of a directory",
                      "Exits with 0 if all are free, 1 if one is held, 2 if the owner of one is dead and none is held.\n\n"
                      "Examples:\n  fslock status /tmp/backup.lock\n  fslock status --json /srv/app | jq -r '.[].pid'",
                      &program::do_status);
        c.add_option("path", status_.paths, "Locks, or directories with locks")->required();
        c.add_flag("--json", status_.json, "For programs");
    }
    int do_status() { return status(status_); }

    void add_break() {
        auto& c = add("break", "Take a lock from an owner that hangs",
                      "The owner, if it lives, is told that it lost. Nothing happens if the lock changed hands\n"
                      "since its epoch was seen.\n\n"
                      "Example:\n  fslock status /tmp/backup.lock\n"
                      "  fslock break /tmp/backup.lock --epoch 4711-1700000000000000000",
                      &program::do_break);
        c.add_option("lock", break_.lock, "Path of the lock")->required();
        c.add_option("--epoch", break_.epoch, "The epoch that `fslock status` shows");
    }
    int do_break() { return cli::break_lock(break_); }

    void add_sweep() {
        auto& c = add("sweep", "Remove what dead processes left beside locks",
                      "Removes tokens and temps whose writers are dead, and never a lock.\n\n"
                      "Examples:\n  fslock sweep --dry-run /srv/app\n  fslock sweep --domain index --domain cache /srv/app",
                      &program::do_sweep);
        c.add_option("directory", sweep_.directory, "Where to look")->required();
        c.add_flag("--dry-run", sweep_.dry_run, "Remove nothing, and say what would be");
        c.add_option("--depth", sweep_.depth, "How many levels of directories below it (2)");
        c.add_option("--domain", sweep_.domains, "Only there, relative to the directory; may be repeated")
            ->type_size(1)
            ->allow_extra_args(false);
        c.add_option("--temp-hours", sweep_.temp_hours, "How old a temp has to be that only its age speaks against (6)")
            ->check(CLI::Range(0.0, 876'000.0));
        c.add_flag("--other-filesystems", sweep_.other_filesystems, "Go on into other filesystems");
        c.add_flag("-v,--verbose", sweep_.verbose, "Say what is left alone as well");
    }
    int do_sweep() { return cli::sweep(sweep_); }

    void add_doctor() {
        auto& c = add("doctor", "Say what locks can rely on in a directory",
                      "Tries it with files of its own, which it removes.\n\nExample:\n  fslock doctor /srv/app",
                      &program::do_doctor);
        c.add_option("directory", doctor_.directory, "The directory")->required();
    }
    int do_doctor() { return doctor(doctor_); }

    CLI::App app_{"A filesystem lock with an owner, for scripts and operators."};
    std::function<int()> chosen_;
    waiting_options run_waiting_;
    waiting_options wait_waiting_;
    run_request run_;
    std::string on_lost_ = "kill";
    double kill_after_ = 10;
    std::string mode_;
    std::optional<double> heartbeat_;
    std::optional<double> stale_after_;
    status_request status_;
    break_request break_;
    sweep_request sweep_;
    doctor_request doctor_;
};

}  // namespace
}  // namespace cli

int main(int argc, char** argv) {
    try {
        return cli::program().go({argv + 1, argv + argc});
    } catch (const std::exception& e) {
        cli::say(e.what());
        return cli::system_failure;
    }
}
