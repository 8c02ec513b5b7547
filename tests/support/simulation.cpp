#include "simulation.hpp"

#include <algorithm>

namespace support {
namespace {

os::lock_byte lock_of(os::lock_byte byte, os::witness_kind how) {
    return how == os::witness_kind::flock ? os::lock_byte::witness : byte;
}

}  // namespace

sim_process::sim_process(sim_disk& disk, sim_host& host, int pid) : disk_(disk), host_(host) {
    self_.pid = pid;
    self_.hostname = self_.nodename = host.name;
    self_.boot_id = host.boot;
    self_.start_time = static_cast<std::uint64_t>(pid);
    self_.pid_ns = 1;
    host.living.insert(pid);
}

void sim_process::note(const os::file_facts& f) noexcept {
    note(f.inode);
    note(static_cast<std::uint64_t>(f.modified_ns));
    note(f.links);
}

void sim_process::suspended(std::coroutine_handle<> waiting, void* slot) {
    waiting_ = waiting;
    slot_ = slot;
}

void sim_process::step(sim_reply reply) {
    const auto happen = std::move(todo_);
    const auto coroutine = std::exchange(waiting_, {});
    reply_ = reply;
    happen(slot_);
    note(static_cast<std::uint64_t>(disk_.now_ns));
    coroutine.resume();
}

void sim_process::die() {
    if (dead_) return;
    host_.living.erase(self_.pid);
    while (!handles_.empty()) close(handles_.begin()->first, 0);
    dead_ = true;
    waiting_ = {};
}

/// Nobody else can see what happens to a file that has no name and one descriptor.
bool sim_process::is_private(const os::file& f) {
    const int inode = entry(f).inode;
    return disk_.inodes.at(inode).open == 1 && disk_.links_to(inode) == 0;
}

os::file sim_process::open_inode(int inode, os::access how) {
    int handle = 3;
    while (handles_.contains(handle)) ++handle;
    auto& i = disk_.inodes.at(inode);
    ++i.open;
    open_file f{inode, how, disk_.now_ns, {}, i.modified_ns};
    if (disk_.cache_ns != 0) f.content = i.content;
    handles_[handle] = std::move(f);
    return {*this, handle, 0};
}

void sim_process::close(int handle, unsigned) noexcept {
    const auto at = handles_.find(handle);
    if (dead_ || at == handles_.end()) return;
    const int inode = at->second.inode;
    auto& i = disk_.inodes.at(inode);
    std::erase_if(i.locks, [&](const auto& l) { return l.second == std::pair<const sim_process*, int>(this, handle); });
    --i.open;
    handles_.erase(at);
    disk_.drop_if_unused(inode);
}

// ---- waiting ---------------------------------------------------------------------------------------------------

std::optional<std::int64_t> sim_process::wakes_at() const {
    if (!waits() || next_ != "sleep") return {};
    return sleeps_until_ns_ + host_.suspended_ns;
}

/// Happens whenever the test says so.
os::call<fslock::core::wake> sim_process::sleep(steady until) {
    using fslock::core::wake;
    if (patience == 0) return wake::cancelled;
    --patience;
    sleeps_until_ns_ = std::chrono::duration_cast<std::chrono::nanoseconds>(until.time_since_epoch()).count();
    return visible<wake>("sleep", [this] {
        if (disk_.clock_runs) disk_.now_ns = std::max(disk_.now_ns, sleeps_until_ns_ + host_.suspended_ns);
        return wake::due;
    });
}

// ---- locks and processes ---------------------------------------------------------------------------------------

os::call<os::lock_state> sim_process::lock(const os::file& on, os::lock_byte byte, os::witness_kind how) {
    const int handle = on.handle();
    const auto which = lock_of(byte, how);
    const auto act = [this, handle, which] {
        const auto& f = handles_.at(handle);
        if (f.how == os::access::read) return os::lock_state::unknown;
        auto& locks = disk_.inodes.at(f.inode).locks;
        const auto [at, taken] = locks.try_emplace({host_.number, which}, this, handle);
        const bool ours = at->second == std::pair<const sim_process*, int>(this, handle);
        return taken || ours ? os::lock_state::free : os::lock_state::held;
    };
    if (is_private(on)) return act();
    return visible<os::lock_state>("lock", act);
}

os::call<std::error_code> sim_process::unlock(const os::file& on, os::lock_byte byte, os::witness_kind how) {
    const int handle = on.handle();
    const auto which = lock_of(byte, how);
    return visible<std::error_code>("unlock", [this, handle, which] {
        auto& locks = disk_.inodes.at(handles_.at(handle).inode).locks;
        const auto at = locks.find({host_.number, which});
        if (at != locks.end() && at->second == std::pair<const sim_process*, int>(this, handle)) locks.erase(at);
        return std::error_code();
    });
}

os::call<os::lock_state> sim_process::probe(const os::file& on, os::lock_byte byte, os::witness_kind how) {
    const int handle = on.handle();
    const auto which = lock_of(byte, how);
    return visible<os::lock_state>("probe", [this, handle, which] {
        const auto& locks = disk_.inodes.at(handles_.at(handle).inode).locks;
        const auto at = locks.find({host_.number, which});
        const bool held = at != locks.end() && at->second != std::pair<const sim_process*, int>(this, handle);
        return held ? os::lock_state::held : os::lock_state::free;
    });
}

os::call<os::process_facts> sim_process::process(int pid) {
    return visible<os::process_facts>("pidfd", [this, pid] {
        os::process_facts p;
        const bool known = host_.living.contains(pid);
        p.life = known ? os::process_facts::state::exists : os::process_facts::state::gone;
        if (known) p.start_time = static_cast<std::uint64_t>(pid);
        return p;
    });
}

std::int64_t sim_process::next_stamp(std::int64_t floor) {
    last_stamp_ = std::max(wall_ns(), last_stamp_ + 1);
    if (last_stamp_ <= floor) last_stamp_ = floor + 1 + 1000 * host_.number;  // by chance, in the real world
    return last_stamp_;
}

}  // namespace support
