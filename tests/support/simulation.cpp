#include "simulation.hpp"

#include <algorithm>
#include <cerrno>

namespace support {
namespace {

std::error_code error(int code) { return {code, std::system_category()}; }

constexpr std::uint64_t device = 1;

}  // namespace

// ---- the kernel ------------------------------------------------------------------------------------------------

int sim_kernel::make_inode() {
    int number = 1;
    while (inodes.contains(number)) ++number;
    inodes[number].modified_ns = clock_ns;
    return number;
}

int sim_kernel::put(const std::string& path, const std::string& content, std::int64_t age_ns) {
    const int number = make_inode();
    inodes[number].content = content;
    inodes[number].content_hash = std::hash<std::string>()(content);
    inodes[number].modified_ns = clock_ns - age_ns;
    names[path] = number;
    return number;
}

int sim_kernel::links_to(int inode) const {
    return static_cast<int>(
        std::count_if(names.begin(), names.end(), [inode](const auto& n) { return n.second == inode; }));
}

void sim_kernel::drop_if_unused(int inode) {
    const auto at = inodes.find(inode);
    if (at != inodes.end() && at->second.open == 0 && links_to(inode) == 0) inodes.erase(at);
}

std::uint64_t sim_kernel::state() const {
    digest d;
    d.add(static_cast<std::uint64_t>(clock_ns));
    for (const auto& [name, inode] : names) {
        d.add(std::hash<std::string>()(name));
        d.add(static_cast<std::uint64_t>(inode));
    }
    for (const auto& [number, i] : inodes) {
        d.add(static_cast<std::uint64_t>(number));
        d.add(static_cast<std::uint64_t>(i.modified_ns));
        d.add(static_cast<std::uint64_t>(i.open));
        d.add(i.content_hash);
        for (const auto& [byte, holder] : i.locks) {
            d.add(static_cast<std::uint64_t>(byte));
            d.add(static_cast<std::uint64_t>(holder.first->pid()) << 8 | static_cast<std::uint64_t>(holder.second));
        }
    }
    for (const int pid : dead_pids) d.add(static_cast<std::uint64_t>(pid));
    return d.value;
}

// ---- a process -------------------------------------------------------------------------------------------------

sim_process::sim_process(sim_kernel& kernel, int pid) : kernel_(kernel) {
    self_.pid = pid;
    self_.nodename = self_.hostname = "sim";
    self_.boot_id = "boot";
    self_.start_time = static_cast<std::uint64_t>(pid);
    self_.pid_ns = 1;
}

void sim_process::note(std::uint64_t heard) noexcept { history_.add(heard); }

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

void sim_process::step() {
    const auto happen = std::move(todo_);
    const auto coroutine = std::exchange(waiting_, {});
    happen(slot_);
    coroutine.resume();
}

void sim_process::die() {
    if (std::exchange(dead_, true)) return;
    kernel_.dead_pids.insert(self_.pid);
    while (!handles_.empty()) {
        dead_ = false;
        close(handles_.begin()->first, 0);
        dead_ = true;
    }
    waiting_ = {};
}

os::file_facts sim_process::facts_of(int inode) const {
    const auto& i = kernel_.inodes.at(inode);
    os::file_facts f;
    f.device = device;
    f.inode = static_cast<std::uint64_t>(inode);
    f.links = static_cast<std::uint64_t>(kernel_.links_to(inode));
    f.size = i.content.size();
    f.modified_ns = i.modified_ns;
    f.kind = i.kind;
    return f;
}

/// Nobody else can see what happens to a file that has no name and one descriptor.
bool sim_process::is_private(const os::file& f) const {
    const int inode = inode_of(f);
    return kernel_.inodes.at(inode).open == 1 && kernel_.links_to(inode) == 0;
}

os::file sim_process::open_inode(int inode) {
    int handle = 3;
    while (handles_.contains(handle)) ++handle;
    handles_[handle] = inode;
    ++kernel_.inodes.at(inode).open;
    return {*this, handle, 0};
}

void sim_process::close(int handle, unsigned) noexcept {
    const auto at = handles_.find(handle);
    if (dead_ || at == handles_.end()) return;
    auto& i = kernel_.inodes.at(at->second);
    std::erase_if(i.locks, [&](const auto& l) { return l.second == std::pair<const sim_process*, int>(this, handle); });
    --i.open;
    const int inode = at->second;
    handles_.erase(at);
    kernel_.drop_if_unused(inode);
}

// ---- waiting ---------------------------------------------------------------------------------------------------

/// Happens whenever the test says so.
os::call<fslock::core::wake> sim_process::sleep(steady until) {
    using fslock::core::wake;
    if (patience == 0) return wake::cancelled;
    --patience;
    return visible<wake>("sleep", [this, until] {
        if (kernel_.clock_runs)
            kernel_.clock_ns = std::max<std::int64_t>(kernel_.clock_ns, until.time_since_epoch().count());
        return wake::due;
    });
}

// ---- files -----------------------------------------------------------------------------------------------------

os::call<os::result<os::new_file>> sim_process::create_unnamed(const std::string&, unsigned, os::fs_class) {
    if (!kernel_.unnamed_files) return error(EOPNOTSUPP);
    const int inode = kernel_.make_inode();
    os::new_file made;
    made.file = open_inode(inode);
    made.facts = facts_of(inode);
    return made;
}

os::call<os::result<os::new_file>> sim_process::create(const std::string& path, unsigned, os::fs_class) {
    return visible<os::result<os::new_file>>("create " + path, [this, path]() -> os::result<os::new_file> {
        if (kernel_.names.contains(path)) return error(EEXIST);
        const int inode = kernel_.make_inode();
        kernel_.names[path] = inode;
        os::new_file made;
        made.file = open_inode(inode);
        made.facts = facts_of(inode);
        return made;
    });
}

os::call<os::result<os::file>> sim_process::open(const std::string& path, os::access, os::fs_class) {
    return visible<os::result<os::file>>("open " + path, [this, path]() -> os::result<os::file> {
        const auto at = kernel_.names.find(path);
        if (at == kernel_.names.end()) return error(ENOENT);
        return open_inode(at->second);
    });
}

os::call<os::result<std::size_t>> sim_process::read(const os::file& from, std::span<char> into) {
    const int inode = inode_of(from);
    const auto act = [this, inode, into]() -> os::result<std::size_t> {
        const auto& i = kernel_.inodes.at(inode);
        const auto n = std::min(i.content.size(), into.size());
        std::copy_n(i.content.begin(), n, into.begin());
        note(i.content_hash);
        return n;
    };
    if (!kernel_.records_change) return act();
    return visible<os::result<std::size_t>>("read", act);
}

os::call<std::error_code> sim_process::write(const os::file& to, std::string_view data) {
    const int inode = inode_of(to);
    const auto act = [this, inode, text = std::string(data)] {
        auto& i = kernel_.inodes.at(inode);
        i.content.replace(0, std::min(text.size(), i.content.size()), text);
        i.content_hash = std::hash<std::string>()(i.content);
        i.modified_ns = kernel_.clock_ns;
        return std::error_code();
    };
    if (is_private(to)) return act();
    return visible<std::error_code>("write", act);
}

os::call<os::result<os::file_facts>> sim_process::facts(const os::file& of) {
    const int inode = inode_of(of);
    const auto act = [this, inode]() -> os::result<os::file_facts> { return facts_of(inode); };
    if (is_private(of) || !kernel_.records_change) return act();
    return visible<os::result<os::file_facts>>("fstat", act);
}

os::call<os::result<os::file_facts>> sim_process::facts_at(const std::string& path) {
    return visible<os::result<os::file_facts>>("lstat " + path, [this, path]() -> os::result<os::file_facts> {
        const auto at = kernel_.names.find(path);
        if (at == kernel_.names.end()) return error(ENOENT);
        return facts_of(at->second);
    });
}

os::call<os::result<std::int64_t>> sim_process::touch(const os::file& of) {
    auto& i = kernel_.inodes.at(inode_of(of));
    i.modified_ns = kernel_.clock_ns;
    return i.modified_ns;
}

os::call<std::error_code> sim_process::link(const os::file& of, const std::string& from, const std::string& to) {
    const int inode = from.empty() ? inode_of(of) : 0;
    return visible<std::error_code>("link " + to, [this, inode, from, to] {
        if (!kernel_.hard_links) return error(EPERM);
        if (kernel_.names.contains(to)) return error(EEXIST);
        if (!from.empty() && !kernel_.names.contains(from)) return error(ENOENT);
        kernel_.names[to] = from.empty() ? inode : kernel_.names.at(from);
        return std::error_code();
    });
}

os::call<std::error_code> sim_process::rename_exclusive(const std::string&, const std::string&) {
    return error(EINVAL);
}

os::call<std::error_code> sim_process::rename(const std::string& from, const std::string& to) {
    return visible<std::error_code>("rename " + from, [this, from, to] {
        const auto at = kernel_.names.find(from);
        if (at == kernel_.names.end()) return error(ENOENT);
        kernel_.names[to] = at->second;
        kernel_.names.erase(from);
        return std::error_code();
    });
}

os::call<std::error_code> sim_process::unlink(const std::string& path) {
    return visible<std::error_code>("unlink " + path, [this, path] {
        const auto at = kernel_.names.find(path);
        if (at == kernel_.names.end()) return error(ENOENT);
        const int inode = at->second;
        kernel_.names.erase(at);
        kernel_.drop_if_unused(inode);
        return std::error_code();
    });
}

os::call<bool> sim_process::has_name(const std::string& directory, const std::string& prefix,
                                     const os::file_facts& of) {
    return visible<bool>("readdir", [this, begin = directory + '/' + prefix, inode = static_cast<int>(of.inode)] {
        return std::any_of(kernel_.names.begin(), kernel_.names.end(),
                           [&](const auto& n) { return n.first.starts_with(begin) && n.second == inode; });
    });
}

os::call<os::result<os::file_facts>> sim_process::directory(const std::string&) {
    os::file_facts f;
    f.device = device;
    f.kind = os::file_kind::directory;
    return f;
}

os::call<os::result<os::directory_facts>> sim_process::classify(const std::string&) {
    os::directory_facts f;
    f.file.device = device;
    f.kind = os::fs_class::local;
    return f;
}

// ---- locks and processes ---------------------------------------------------------------------------------------

os::call<os::lock_state> sim_process::lock(const os::file& on, os::lock_byte which, os::witness_kind) {
    const int inode = inode_of(on);
    const int handle = on.handle();
    const auto act = [this, inode, handle, which] {
        auto& locks = kernel_.inodes.at(inode).locks;
        const auto [at, taken] = locks.try_emplace(which, this, handle);
        const bool ours = at->second == std::pair<const sim_process*, int>(this, handle);
        return taken || ours ? os::lock_state::free : os::lock_state::held;
    };
    if (is_private(on)) return act();
    return visible<os::lock_state>("lock", act);
}

os::call<std::error_code> sim_process::unlock(const os::file& on, os::lock_byte which, os::witness_kind) {
    const int inode = inode_of(on);
    return visible<std::error_code>("unlock", [this, inode, which] {
        kernel_.inodes.at(inode).locks.erase(which);
        return std::error_code();
    });
}

os::call<os::lock_state> sim_process::probe(const os::file& on, os::lock_byte which, os::witness_kind) {
    const int inode = inode_of(on);
    const int handle = on.handle();
    return visible<os::lock_state>("probe", [this, inode, handle, which] {
        const auto& locks = kernel_.inodes.at(inode).locks;
        const auto at = locks.find(which);
        const bool held = at != locks.end() && at->second != std::pair<const sim_process*, int>(this, handle);
        return held ? os::lock_state::held : os::lock_state::free;
    });
}

os::call<os::process_facts> sim_process::process(int pid) {
    return visible<os::process_facts>("pidfd", [this, pid] {
        os::process_facts p;
        const bool known = pid >= 100 && !kernel_.dead_pids.contains(pid);
        p.life = known ? os::process_facts::state::exists : os::process_facts::state::gone;
        if (known) p.start_time = static_cast<std::uint64_t>(pid);
        return p;
    });
}

std::int64_t sim_process::next_stamp(std::int64_t floor) {
    last_stamp_ = std::max({kernel_.clock_ns, last_stamp_ + 1, floor + 1});
    return last_stamp_;
}

}  // namespace support
