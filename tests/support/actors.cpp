#include "actors.hpp"

#include <algorithm>

namespace support {
namespace {

core::place place_of(const actor& a) {
    core::place where;
    os::directory_facts facts;
    facts.file.device = 1;
    facts.file.kind = os::file_kind::directory;
    facts.kind = a.disk.kind;
    where.where = std::make_shared<core::directory>("/d", facts);
    (void)core::split(lock_path, where.lock);
    return where;
}

/// What it was told of its lock.
void hear(actor& a, const core::standing_outcome& told, std::int64_t began) {
    if (a.overdue()) a.doubtful = true;
    if (told.now == core::standing::lost) {
        if (!a.doubtful && a.cares) a.lost = true;
        a.now = part::ended;
    } else if (told.now == core::standing::ours) {
        a.beaten_ns = began;
    }
}

core::task<bool> works(actor& a, core::holder& h) {
    for (int i = 0; i < a.beats && a.now == part::owning; ++i) {
        ++a.process.patience;  // a nap is no waiting for the lock
        (void)co_await a.process.sleep(a.process.now() + a.nap);
        if (!a.looks) continue;
        const auto began = a.disk.now_ns;
        const auto told = co_await h.beat(a.process);
        hear(a, told, began);
    }
    if (a.looks && a.now == part::owning) {
        const auto told = co_await h.verify(a.process);  // a step at which the lock must be ours
        hear(a, told, a.beaten_ns);
    }
    co_return a.now == part::owning;
}

}  // namespace

bool actor::overdue() const {
    const auto silence = std::chrono::nanoseconds(disk.now_ns - beaten_ns);
    return disk.kind == os::fs_class::shared && silence > opts.foreign_stale_after;
}

core::task<int> takes_turns(actor& a) {
    const auto where = place_of(a);
    for (int i = 0; i < a.turns; ++i) {
        core::contender c(a.process, where, a.opts, a.process, a, a.seen);
        a.now = part::contending;
        const auto out = co_await core::contend(c, false);
        if (out.error) a.failure = out.error;
        a.gave_up = out.how != core::ending::owned;
        if (a.gave_up) break;
        a.inode = c.mine.facts.inode;
        a.epoch = c.mine.rec.writer_epoch;
        a.doubtful = false;
        core::holder h(where, std::move(c.mine), a.process.now());
        a.begin_to_own();
        (void)co_await works(a, h);
        a.now = part::ended;
        auto released = co_await h.release(c);
        // Without a witness, a release that meets a token that blocks, or cannot look, has to be tried again, for as long
        // as that may last. With one, the record is dead from then on.
        const auto to_try_again = [&] {
            return !h.guarded() &&
                   (released == std::errc::device_or_resource_busy || released == std::errc::io_error);
        };
        for (int tries = 0; to_try_again() && tries < 40; ++tries) {
            a.process.patience += 2;  // this nap, and the token has to settle
            (void)co_await a.process.sleep(a.process.now() + a.nap);
            released = co_await h.release(c);
        }
        // With a flock it may meet one token after the other, until it leaves a dead record to whoever comes next.
        if (released == std::errc::device_or_resource_busy && a.disk.witness == os::witness_kind::flock)
            a.gave_up = true;
    }
    a.now = part::ended;
    co_return a.won;
}

core::task<int> beats_from_elsewhere(actor& a) {
    a.now = part::ended;
    for (int i = 0; i < a.beats; ++i) {
        ++a.process.patience;
        (void)co_await a.process.sleep(a.process.now() + a.nap);
        const auto at = a.disk.names.find(lock_path);
        if (at != a.disk.names.end()) a.disk.inodes.at(at->second).modified_ns = a.disk.clock_ns();
    }
    co_return 0;
}

core::task<int> removes_by_hand(actor& a) {
    a.now = part::ended;
    (void)co_await a.process.unlink(lock_path);
    co_return 0;
}

core::task<int> breaks(actor& a) {
    a.now = part::ended;
    // By us, or by who takes us for dead and finds what stands in for its record.
    a.disk.on_removal.emplace_back([&a](const sim_process& who, const std::string& name, int inode) {
        if (name != lock_path || static_cast<std::uint64_t>(inode) != a.victim->inode) return;
        const auto& content = a.disk.inodes.at(inode).content;
        if (&who == &a.process || content.find(a.victim->epoch) == std::string::npos) a.victim->broken = true;
    });
    const auto where = place_of(a);
    core::contender c(a.process, where, a.opts, a.process, a, a.seen);
    const auto out = co_await core::break_record(c, a.victim->epoch);
    a.gave_up = out.error == std::errc::device_or_resource_busy;
    if (out.error && !a.gave_up) a.failure = out.error;
    co_return 0;
}

core::task<int> sweeps(actor& a) {
    a.now = part::ended;
    const auto where = place_of(a);
    core::contender c(a.process, where, a.opts, a.process, a, a.seen);
    core::sweep_rules rules;
    rules.temp_grace = std::chrono::hours(6);
    std::vector<std::pair<std::string, int>> temps;
    for (const auto& [path, inode] : a.disk.names) {
        const auto name = core::side_name_of(path.substr(path.rfind('/') + 1));
        if (name.what == core::side::temp) temps.emplace_back(path, name.maker);
    }
    const auto out = co_await core::sweep_token(c, rules);
    if (out.error) a.failure = out.error;
    for (const auto& [path, maker] : temps) {
        const auto swept = co_await core::sweep_temp(c, path, maker, rules);
        if (swept.error) a.failure = swept.error;
    }
    co_return 0;
}

std::string record_text(int pid, const sim_host& host, writer by) {
    core::record r;
    r.pid = pid;
    r.hostname = host.name;
    r.boot_id = host.boot;
    r.process_start_time = static_cast<std::uint64_t>(pid);
    r.created_at_ms = r.heartbeat_at_ms = 1'600'000'000'000;
    r.writer_epoch = std::to_string(pid) + "-1600000000000000000";
    if (by != writer::first_implementation) {
        r.pid_ns = 1;
        r.heartbeat_ms = 5000;
    }
    if (by == writer::ours) r.guard = os::witness_kind::ofd;
    return core::format(r);
}

// ---- a site ----------------------------------------------------------------------------------------------------

sim_host& site::add_host(const std::string& name) {
    sim_host h;
    h.number = static_cast<int>(hosts.size());
    h.name = name;
    h.boot = "boot of " + name;
    hosts.push_back(std::move(h));
    return hosts.back();
}

actor& site::add(int host, int pid) {
    actors.push_back(std::make_unique<actor>(disk, hosts.at(static_cast<std::size_t>(host)), pid));
    return *actors.back();
}

actor& site::add_started(int host, int pid, actor::behaviour what) {
    auto& a = add(host, pid);
    a.start(what);
    return a;
}

std::string site::broken() const {
    if (std::count_if(actors.begin(), actors.end(), [](const auto& a) { return a->owns(); }) > 1) return "two owners";
    for (const auto& a : actors) {
        if (a->lost && !records_vanish && !a->process.dead()) return "an owner lost its lock";
        if (a->failure) return "an error: " + a->failure.message();
        if (nobody_may_win && a->won != 0) return "a living owner elsewhere was displaced";
        if (shared() || records_vanish || !a->owns() || a->inode == 0) continue;
        const auto at = disk.names.find(lock_path);
        if (at == disk.names.end() || static_cast<std::uint64_t>(at->second) != a->inode)
            return "an owner without a record";
    }
    return {};
}

std::string site::wrong_at_the_end() {
    const auto any = [this](auto what) { return std::any_of(actors.begin(), actors.end(), what); };
    const bool died = any([](const auto& a) { return a->process.dead(); });
    const bool gave_up = any([](const auto& a) { return a->gave_up; });
    const bool won = any([](const auto& a) { return a->won != 0; });
    for (const auto& a : actors)
        if (a->run && a->run.done()) (void)a->run.result();  // throws what it has thrown
    if (nobody_may_win) return {};
    if (somebody_must_win && !died && !won) return "nobody got the lock";
    if (!died && !gave_up)
        for (const auto& [name, inode] : disk.names)
            if (disk.inodes.at(inode).content != stays && !(tokens_may_stay && name == token_path))
                return name + " is left behind";
    disk.clock_runs = true;
    auto& newcomer = add(0, 900);
    newcomer.process.patience = 200;
    newcomer.opts.poll_interval = core::milliseconds(60'000);
    newcomer.start(takes_turns);
    for (int i = 0; i < 5000 && newcomer.process.waits(); ++i) newcomer.process.step();
    if (newcomer.won != 1) return "a newcomer does not get the lock";
    return {};
}

}  // namespace support
