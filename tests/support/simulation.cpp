#include "simulation.hpp"

#include <algorithm>
#include <cerrno>

namespace support {
namespace {

std::error_code error(int code) { return {code, std::system_category()}; }

}  // namespace

sim_process::sim_process(sim_disk& disk, sim_host& host, int pid) : disk_(disk), host_(host) {
    self_.pid = pid;
    self_.nodename = self_.hostname = host.name;
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

template <class T, class F>
os::call<T> sim_process::visible(std::string what, F f) {
    next_ = std::move(what);
    todo_ = [this, f = std::move(f)](void* slot) mutable {
        T answer = f();
        note(answer);
        *static_cast<T*>(slot) = std::move(answer);
    };
    return os::call<T>(static_cast<os::suspension&>(*this));
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

// ---- files -----------------------------------------------------------------------------------------------------

os::call<os::result<os::new_file>> sim_process::create_unnamed(const std::string&, unsigned, os::fs_class) {
    if (!disk_.unnamed_files) return error(EOPNOTSUPP);
    const int inode = disk_.make_inode();
    os::new_file made;
    made.file = open_inode(inode, os::access::read_write);
    made.facts = disk_.facts_of(inode);
    return made;
}

os::call<os::result<os::new_file>> sim_process::create(const std::string& path, unsigned, os::fs_class) {
    return visible<os::result<os::new_file>>("create " + path, [this, path]() -> os::result<os::new_file> {
        if (disk_.names.contains(path)) return error(EEXIST);
        const int inode = disk_.make_inode();
        disk_.names[path] = inode;
        host_.seen_at.erase(path);
        os::new_file made;
        made.file = open_inode(inode, os::access::read_write);
        made.facts = disk_.facts_of(inode);
        return made;
    });
}

os::call<os::result<os::file>> sim_process::open(const std::string& path, os::access how, os::fs_class) {
    return visible<os::result<os::file>>("open " + path, [this, path, how]() -> os::result<os::file> {
        const auto at = disk_.names.find(path);
        if (at == disk_.names.end()) return error(ENOENT);
        const auto kind = disk_.inodes.at(at->second).kind;
        if (kind == os::file_kind::symlink) return error(ELOOP);
        if (kind == os::file_kind::directory && how == os::access::read_write) return error(EISDIR);
        return open_inode(at->second, how);
    });
}

os::call<os::result<std::size_t>> sim_process::read(const os::file& from, std::span<char> into) {
    const int handle = from.handle();
    const auto act = [this, handle, into]() -> os::result<std::size_t> {
        const auto& f = handles_.at(handle);
        const auto& i = disk_.inodes.at(f.inode);
        const auto& content = lags(f) ? f.content : i.content;
        const auto n = std::min(content.size(), into.size());
        std::copy_n(content.begin(), n, into.begin());
        note(lags(f) ? std::hash<std::string>()(content) : i.content_hash);
        return n;
    };
    if (!disk_.records_change) return act();
    return visible<os::result<std::size_t>>("read", act);
}

os::call<std::error_code> sim_process::write(const os::file& to, std::string_view data) {
    const int handle = to.handle();
    const auto act = [this, handle, text = std::string(data)] {
        auto& f = handles_.at(handle);
        if (f.how == os::access::read) return error(EBADF);
        disk_.rewrite(f.inode, text);
        f.opened_ns = disk_.now_ns;
        f.modified_ns = disk_.inodes.at(f.inode).modified_ns;
        if (disk_.cache_ns != 0) f.content = disk_.inodes.at(f.inode).content;
        return std::error_code();
    };
    if (is_private(to)) return act();
    return visible<std::error_code>("write", act);
}

os::call<os::result<os::file_facts>> sim_process::facts(const os::file& of) {
    const int handle = of.handle();
    const auto act = [this, handle]() -> os::result<os::file_facts> {
        const auto& f = handles_.at(handle);
        auto facts = disk_.facts_of(f.inode);
        if (lags(f)) {
            facts.modified_ns = f.modified_ns;
            facts.size = f.content.size();
        }
        return facts;
    };
    if (is_private(of) || !disk_.records_change) return act();
    return visible<os::result<os::file_facts>>("fstat", act);
}

os::result<os::file_facts> sim_process::look_at(const std::string& path) {
    if (const auto old = host_.seen_at.find(path); old != host_.seen_at.end()) {
        if (disk_.now_ns - old->second.first < disk_.cache_ns) return old->second.second;
    }
    const auto at = disk_.names.find(path);
    os::result<os::file_facts> found = error(ENOENT);
    if (at != disk_.names.end()) found = disk_.facts_of(at->second);
    if (disk_.cache_ns != 0) host_.seen_at[path] = {disk_.now_ns, found};
    return found;
}

os::call<os::result<os::file_facts>> sim_process::facts_at(const std::string& path) {
    return visible<os::result<os::file_facts>>("lstat " + path, [this, path] { return look_at(path); });
}

os::call<os::result<std::int64_t>> sim_process::touch(const os::file& of) {
    auto& f = entry(of);
    auto& i = disk_.inodes.at(f.inode);
    i.modified_ns = f.modified_ns = disk_.clock_ns();
    return i.modified_ns;
}

os::call<std::error_code> sim_process::link(const os::file& of, const std::string& from, const std::string& to) {
    const int inode = from.empty() ? entry(of).inode : 0;
    return visible<std::error_code>("link " + to, [this, inode, from, to] {
        if (!disk_.hard_links) return error(EPERM);
        if (disk_.names.contains(to)) return error(EEXIST);
        if (!from.empty() && !disk_.names.contains(from)) return error(ENOENT);
        disk_.names[to] = from.empty() ? inode : disk_.names.at(from);
        host_.seen_at.erase(to);
        if (reply_ == sim_reply::truth) return std::error_code();
        return error(reply_ == sim_reply::io_error ? EIO : EEXIST);
    });
}

os::call<std::error_code> sim_process::rename_exclusive(const std::string& from, const std::string& to) {
    if (!disk_.exclusive_rename) return error(EINVAL);
    return visible<std::error_code>("rename " + from + " if there is no " + to, [this, from, to] {
        if (!disk_.names.contains(from)) return error(ENOENT);
        if (disk_.names.contains(to)) return error(EEXIST);
        disk_.names[to] = disk_.names.at(from);
        disk_.names.erase(from);
        host_.seen_at.erase(from);
        host_.seen_at.erase(to);
        return std::error_code();
    });
}

os::call<std::error_code> sim_process::rename(const std::string& from, const std::string& to) {
    return visible<std::error_code>("rename " + from, [this, from, to] {
        const auto at = disk_.names.find(from);
        if (at == disk_.names.end()) return error(ENOENT);
        const int inode = at->second;
        disk_.names.erase(at);
        disk_.remove(to);
        disk_.names[to] = inode;
        host_.seen_at.erase(from);
        host_.seen_at.erase(to);
        return std::error_code();
    });
}

os::call<std::error_code> sim_process::unlink(const std::string& path) {
    return visible<std::error_code>("unlink " + path, [this, path] {
        if (!disk_.names.contains(path)) return error(ENOENT);
        disk_.remove(path);
        host_.seen_at.erase(path);
        return std::error_code();
    });
}

os::call<bool> sim_process::has_name(const std::string& directory, const std::string& prefix,
                                     const os::file_facts& of) {
    return visible<bool>("readdir", [this, begin = directory + '/' + prefix, inode = static_cast<int>(of.inode)] {
        return std::any_of(disk_.names.begin(), disk_.names.end(),
                           [&](const auto& n) { return n.first.starts_with(begin) && n.second == inode; });
    });
}

os::call<os::result<os::file_facts>> sim_process::directory(const std::string&) {
    os::file_facts f;
    f.device = 1;
    f.kind = os::file_kind::directory;
    return f;
}

os::call<os::result<os::directory_facts>> sim_process::classify(const std::string&) {
    os::directory_facts f;
    f.file.device = 1;
    f.file.kind = os::file_kind::directory;
    f.kind = disk_.kind;
    return f;
}

// ---- locks and processes ---------------------------------------------------------------------------------------

os::call<os::lock_state> sim_process::lock(const os::file& on, os::lock_byte which, os::witness_kind) {
    const int handle = on.handle();
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

os::call<std::error_code> sim_process::unlock(const os::file& on, os::lock_byte which, os::witness_kind) {
    const int handle = on.handle();
    return visible<std::error_code>("unlock", [this, handle, which] {
        auto& locks = disk_.inodes.at(handles_.at(handle).inode).locks;
        const auto at = locks.find({host_.number, which});
        if (at != locks.end() && at->second == std::pair<const sim_process*, int>(this, handle)) locks.erase(at);
        return std::error_code();
    });
}

os::call<os::lock_state> sim_process::probe(const os::file& on, os::lock_byte which, os::witness_kind) {
    const int handle = on.handle();
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
    last_stamp_ = std::max({wall_ns(), last_stamp_ + 1, floor + 1});
    return last_stamp_;
}

}  // namespace support
