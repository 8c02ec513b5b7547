// `fslock break` and `fslock sweep`: what an operator removes.
#include <iostream>

#include "commands.hpp"
#include "exits.hpp"
#include "fslock/fslock.hpp"
#include "text.hpp"

namespace cli {
namespace {

/// What can be said of the lock instead: whose it is, and how to break that one.
void say_whose(const std::string& lock, const std::string& why) {
    fslock::error_code ec;
    const auto info = fslock::inspect(lock, ec);
    if (ec) {
        (void)complain(lock, ec);
    } else if (!info) {
        say(lock + ": " + why + "; it is free");
    } else if (info->malformed) {
        say(lock + ": " + why + "; its record is damaged, and goes when nobody completes it");
    } else {
        say(lock + ": " + why + "; it is held by " + fslock::to_string(info->owner) + ". To break that: fslock break " +
            lock + " --epoch " + info->owner.writer_epoch);
    }
}

/// What a sweep stays out of unless it is told otherwise.
bool is_elsewhere(const fslock::swept_file& f) { return f.error == std::errc::cross_device_link; }

std::string reason(const fslock::swept_file& f) {
    if (is_elsewhere(f)) return "on another filesystem; --other-filesystems goes on there";
    if (f.error) return f.error.message();
    if (f.proof != fslock::proof::none) return to_string(f.proof);
    return "its writer may live";
}

}  // namespace

int break_lock(const break_request& r) {
    if (r.epoch.empty()) {
        say_whose(r.lock, "--epoch says whose lock to break");
        return usage;
    }
    try {
        if (fslock::break_lock(r.lock, r.epoch)) {
            std::cout << printable(r.lock) << ": broken\n";
            return success;
        }
    } catch (const fslock::system_error& e) {
        // `what` names who is in the way, before the message of the code (and its number, with Boost).
        const std::string what = e.what();
        return complain(what.substr(0, what.rfind(": " + e.code().message())), e.code());
    }
    say_whose(r.lock, "not broken: it is not of epoch " + r.epoch);
    return conflict;
}

int sweep(const sweep_request& r) {
    fslock::sweep_options o;
    o.domains.assign(r.domains.begin(), r.domains.end());
    o.depth = r.depth;
    o.dry_run = r.dry_run;
    o.other_filesystems = r.other_filesystems;
    o.temp_grace = std::chrono::milliseconds(static_cast<long long>(r.temp_hours * 3'600'000));
    const std::string done = r.dry_run ? "would remove" : "removed";
    o.on_removed = [&](const fslock::swept_file& f) {
        std::cout << done << ' ' << printable(f.path.string()) << " (" << reason(f) << ")\n";
    };
    bool failed = false;
    o.on_skipped = [&](const fslock::swept_file& f) {
        const bool minds = f.error && !is_elsewhere(f);
        failed = failed || (minds && f.error != fslock::errc::not_a_lock_file);
        if (minds || r.verbose) say(f.path.string() + ": skipped: " + reason(f));
    };
    fslock::error_code ec;
    const auto removed = fslock::sweep(r.directory, o, ec);
    if (ec == fslock::errc::bad_options) {
        say("a domain is a path below the directory, without `..`; temps have to be a minute old at least");
        return usage;
    }
    if (ec) return complain(r.directory, ec);
    std::cout << done << ' ' << removed << (removed == 1 ? " file\n" : " files\n");
    return failed ? io_failure : success;
}

}  // namespace cli
