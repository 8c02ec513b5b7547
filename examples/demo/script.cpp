#include "script.hpp"

#include <algorithm>
#include <csignal>
#include <fslock/fslock.hpp>
#include <utility>

#include "worker.hpp"

namespace demo {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// The run takes a few seconds. On a machine that is very busy it may take this long, but not for ever.
constexpr std::chrono::seconds patience{60};

constexpr std::size_t most_faults_shown = 10;

volatile std::sig_atomic_t interrupted = 0;

/// Whom an owner's label names.
std::string whom(const message& m) {
    return m.about.empty() ? "somebody" : m.about.substr(m.about.size() - 1);
}

std::string entry(int number) {
    return "entry " + std::to_string(number);
}

}  // namespace

void script::interrupt() noexcept {
    interrupted = 1;
}

script::script(const std::string& program, std::filesystem::path directory)
    : directory_(std::move(directory)), crew_(program, directory_), deadline_(out_.start() + patience) {}

void script::play() {
    out_.title("Four processes contend for one lock and write to one ledger under it; owners get killed.");
    for (int i = 0; i < 4; ++i) hire("");
    let_them_work(3, milliseconds(0));
    in_detail_ = false;
    for (int round = 0; round < 6; ++round) {
        let_them_work(4, milliseconds(350));
        if (round == 2) {
            stop_an_owner();
        } else {
            kill_an_owner();
        }
    }
    let_them_work(4, milliseconds(350));
    dismiss();
}

void script::hire(const std::string& why) {
    const char name = next_name_++;
    const auto pid = std::to_string(crew_.start(name));
    out_.line(steady_clock::now(), tone::plain, std::string(1, name) + " starts" + why + " (pid " + pid + ")");
}

void script::let_them_work(int turns, milliseconds at_least) {
    const auto until = steady_clock::now() + at_least;
    while (turns > 0 || steady_clock::now() < until) {
        const auto m = next();
        if (m.what == news::ends) --turns;
    }
}

/// An owner in the middle of its work: what a frozen process was seen to own, it still owns when the next
/// signal reaches it. (Otherwise it might just have given the lock back.)
message script::freeze_an_owner() {
    for (;;) {
        auto m = next();
        if (m.what != news::begins) continue;
        crew_.freeze(m.worker);
        if (surely_owns(m)) return m;
        crew_.thaw(m.worker);
    }
}

bool script::surely_owns(const message& m) const {
    fslock::error_code error;
    const auto info = fslock::inspect(lock_in(directory_), error);
    if (error || !info || info->owner.writer_epoch != m.epoch) return false;
    const auto marks = read(ledger_in(directory_));
    return !marks.empty() && marks.back().begins && marks.back().epoch == m.epoch;
}

void script::kill_an_owner() {
    const auto victim = freeze_an_owner();
    const std::string name(1, victim.worker);
    reported_.at(victim.epoch).killed = true;
    const auto now = steady_clock::now();
    crew_.kill(victim.worker);
    killed_at_ = now;
    ++kills_;
    out_.line(now, tone::bad,
              name + " is killed in the middle of " + entry(victim.number) + " (SIGKILL)" + waiters());
    in_detail_ = true;
    see_take_over(victim);
    hire(" in the place of " + name);
    let_them_work(1, milliseconds(0));
    in_detail_ = false;
}

std::string script::waiters() const {
    return waiting_.empty() ? "; nobody waits"
                            : "; " + enumerate(waiting_) + (waiting_.size() > 1 ? " wait" : " waits");
}

/// The record may be removed by one worker and the lock be taken by another.
void script::see_take_over(const message& victim) {
    bool proved = false;
    while (!proved || killed_at_) {
        const auto m = next();
        if (m.what == news::reclaims && m.epoch == victim.epoch) proved = true;
    }
}

/// An owner that stands still lives, and nobody may take the lock from it.
void script::stop_an_owner() {
    const auto owner = freeze_an_owner();
    const std::string name(1, owner.worker);
    out_.line(steady_clock::now(), tone::bad,
              name + " is stopped in the middle of " + entry(owner.number) + " (SIGSTOP)" + waiters());
    const auto until = steady_clock::now() + milliseconds(500);
    in_detail_ = true;
    while (const auto m = next_until(until)) {
        if (m->what == news::owns || m->what == news::reclaims)
            faults_.push_back(name + ", who was only stopped, was displaced by " + m->worker);
    }
    out_.line(steady_clock::now(), tone::good, name + " still owns the lock, and goes on (SIGCONT)");
    crew_.thaw(owner.worker);
    let_them_work(1, milliseconds(0));
    in_detail_ = false;
}

void script::dismiss() {
    crew_.dismiss();
    out_.line(steady_clock::now(), tone::plain, "the workers are told to stop");
    while (crew_.busy()) (void)next_until(deadline_);
    out_.line(steady_clock::now(), tone::plain, "all have exited\n");
}

std::optional<message> script::next_until(steady until) {
    for (;;) {
        if (auto m = crew_.hear(std::min(until, deadline_))) {
            note(*m);
            tell(*m);
            return m;
        }
        if (interrupted != 0) throw failure("interrupted");
        const auto now = steady_clock::now();
        if (now >= deadline_) throw failure("no end after a minute: something is stuck");
        if (now >= until || !crew_.busy()) return {};
    }
}

message script::next() {
    auto m = next_until(deadline_);
    if (!m) throw failure("all workers have exited");
    return std::move(*m);
}

void script::note(const message& m) {
    std::erase(waiting_, m.worker);
    switch (m.what) {
        case news::waits:
            waiting_.insert(std::upper_bound(waiting_.begin(), waiting_.end(), m.worker), m.worker);
            break;
        case news::owns:
            reported_[m.epoch].worker = m.worker;
            break;
        case news::begins:
            must_be_alone(m);
            reported_.at(m.epoch).number = m.number;
            break;
        case news::ends:
            reported_.at(m.epoch).ended = true;
            break;
        case news::fails:
            throw failure(std::string(1, m.worker) + " failed: " + m.text);
        case news::reclaims:
        case news::notes:
            break;
    }
}

/// The news come in the order in which things happened, so an overlap shows before the ledger is read.
void script::must_be_alone(const message& m) const {
    for (const auto& [epoch, other] : reported_) {
        if (epoch == m.epoch || other.number == 0 || other.ended || other.killed) continue;
        throw failure("two owners at once: " + std::string(1, m.worker) + " writes " + entry(m.number) +
                      " while " + other.worker + " writes " + entry(other.number));
    }
}

void script::tell(const message& m) {
    const std::string name(1, m.worker);
    if (m.what == news::notes) out_.line(m.at, tone::plain, name + ": " + m.text);
    if (m.what == news::reclaims)
        out_.line(m.at, tone::good,
                  name + " finds " + whom(m) + " dead (" + m.text + ") and removes its record");
    if (m.what == news::owns && killed_at_) {
        takeovers_.push_back(m.at - *killed_at_);
        killed_at_.reset();
        out_.line(m.at, tone::good,
                  name + " owns the lock, " + milliseconds_of(takeovers_.back()) + " after the kill");
    } else if (in_detail_) {
        tell_turn(m);
    } else if (m.what == news::ends) {
        out_.turn(m.worker, m.number);
    }
}

void script::tell_turn(const message& m) {
    const std::string name(1, m.worker);
    if (m.what == news::waits)
        out_.line(m.at, tone::plain, name + " waits for " + whom(m) + " (" + m.text + ")");
    if (m.what == news::owns) out_.line(m.at, tone::plain, name + " owns the lock");
    if (m.what == news::ends)
        out_.line(m.at, tone::plain, name + " has written " + entry(m.number) + " and gives the lock back");
}

bool script::judge() {
    judge_ledger();
    judge_takeovers();
    judge_directory();
    const auto shown = std::min(faults_.size(), most_faults_shown);
    for (std::size_t i = 0; i < shown; ++i) out_.verdict(false, faults_[i]);
    if (shown < faults_.size())
        out_.verdict(false, "and " + std::to_string(faults_.size() - shown) + " more faults");
    return faults_.empty();
}

void script::judge_ledger() {
    auto found = check(read(ledger_in(directory_)), reported_);
    const auto unfinished = std::to_string(found.unfinished);
    if (found.unfinished != kills_)
        found.faults.push_back(unfinished + " unfinished entries, but " + std::to_string(kills_) +
                               " killed owners");
    if (found.faults.empty()) {
        out_.verdict(true, "ledger: entries 1 to " + std::to_string(found.entries) +
                               ", none lost, none inside another; " + unfinished +
                               " unfinished, those of killed owners");
    }
    faults_.insert(faults_.end(), found.faults.begin(), found.faults.end());
}

void script::judge_takeovers() {
    auto times = takeovers_;
    std::sort(times.begin(), times.end());
    if (times.empty() || times.size() != static_cast<std::size_t>(kills_)) {
        faults_.push_back("not every killed owner had a successor");
        return;
    }
    out_.verdict(true, "lock: acquired " + std::to_string(reported_.size()) + " times; " +
                           std::to_string(kills_) + " owners killed, the next owner after " +
                           milliseconds_of(times[times.size() / 2]) + " (median), " +
                           milliseconds_of(times.back()) + " (longest)");
}

void script::judge_directory() {
    std::string left;
    for (const auto& file : std::filesystem::directory_iterator(directory_)) {
        if (file.path() != ledger_in(directory_)) left += " " + file.path().filename().string();
    }
    if (!left.empty()) {
        faults_.push_back("left behind:" + left);
        return;
    }
    out_.verdict(true, "directory: nothing is left in it beside the ledger");
}

}  // namespace demo
