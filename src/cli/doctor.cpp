// `fslock doctor`: what a directory has to offer to locks, and what follows from that.
#include <unistd.h>

#include <cstdlib>
#include <iostream>

#include "commands.hpp"
#include "exits.hpp"
#include "fslock/fslock.hpp"
#include "text.hpp"

namespace cli {
namespace {

using fslock::directory_report;
using fslock::trial;

void line(const painter& colours, const char* name, bool works, const std::string& what) {
    std::string text = "  ";
    text += name;
    text.resize(20, ' ');
    std::cout << text << colours.paint(works ? colour::good : colour::bad, works ? "yes" : "no ");
    if (!what.empty()) std::cout << "  " << what;
    std::cout << '\n';
}

std::string why(const trial& t) { return t.error ? t.error.message() : std::string(); }

std::string clock_text(std::chrono::nanoseconds ahead) {
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(ahead).count();
    if (std::abs(ms) < 50) return "the same as ours";
    return std::to_string(std::abs(ms)) + (ms > 0 ? " ms ahead of ours" : " ms behind ours");
}

void print_trials(const directory_report& r, const painter& colours) {
    line(colours, "local filesystem", r.local, r.local ? "one kernel is behind it" : "other hosts may be there too");
    line(colours, "files", r.files.works, why(r.files));
    line(colours, "unnamed files", r.unnamed_files.works, why(r.unnamed_files));
    line(colours, "hard links", r.hard_links.works, why(r.hard_links));
    line(colours, "exclusive rename", r.exclusive_rename.works, why(r.exclusive_rename));
    line(colours, "kernel locks", r.local && r.witness_holds.works,
         r.local ? std::string(r.witness) : "prove nothing here");
    line(colours, "events", r.events.works, r.local ? why(r.events) : "not of other hosts");
    line(colours, "clock", r.clock.works, r.clock.works ? clock_text(r.clock_ahead) : why(r.clock));
}

void promise(const painter& colours, bool holds, const std::string& what) {
    std::cout << "  " << colours.paint(holds ? colour::good : colour::bad, holds ? "holds    " : "does not ") << ' ' << what
              << '\n';
}

void print_promises(const directory_report& r, const painter& colours) {
    const bool witnessed = r.local && r.witness_holds.works;
    const bool whole = r.hard_links.works || r.exclusive_rename.works;
    promise(colours, witnessed, "never two owners at once on this machine, whatever is stopped or killed");
    const bool told = r.local && r.events.works;
    const auto next_look = "            instead: at the next look, every 100 ms\n";
    promise(colours, witnessed && told, "a dead owner is taken over at once");
    if (!witnessed) {
        std::cout << "            instead: an owner on another host after 75 s without a heartbeat; fence what you write\n";
    } else if (!told) {
        std::cout << next_look;
    }
    promise(colours, told, "a release is seen at once");
    if (!told) std::cout << next_look;
    promise(colours, whole, "a record is never seen half written");
    promise(colours, r.unnamed_files.works, "a killed contender leaves no file behind");
    if (!r.unnamed_files.works) std::cout << "            instead: `fslock sweep` removes what is left\n";
}

}  // namespace

int doctor(const doctor_request& r) {
    fslock::error_code ec;
    const auto report = fslock::diagnose(r.directory, ec);
    if (ec) return complain(r.directory, ec);
    const painter colours(STDOUT_FILENO);
    std::cout << printable(r.directory) << '\n';
    print_trials(report, colours);
    if (!report.files.works) return complain(r.directory + ": no locks here", report.files.error);
    std::cout << "what is promised here\n";
    print_promises(report, colours);
    return success;
}

}  // namespace cli
