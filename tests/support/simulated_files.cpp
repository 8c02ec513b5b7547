// The calls of a simulated process that have to do with files.
#include <algorithm>
#include <cerrno>
#include <utility>

#include "simulation.hpp"

namespace support {
namespace {

std::error_code error(int code) { return {code, std::system_category()}; }

}  // namespace

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
        if (reply_ == sim_reply::io_error) return error(EIO);
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
        if (from.empty() && std::exchange(disk_.inodes.at(inode).had_name, true) && disk_.links_to(inode) == 0)
            return error(ENOENT);
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
        return reply_ == sim_reply::retried ? error(ENOENT) : std::error_code();
    });
}

os::call<std::error_code> sim_process::rename(const std::string& from, const std::string& to) {
    return visible<std::error_code>("rename " + from, [this, from, to] {
        const auto at = disk_.names.find(from);
        if (at == disk_.names.end()) return error(ENOENT);
        const int inode = at->second;
        disk_.tell_of_removal(*this, from);
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
        disk_.tell_of_removal(*this, path);
        disk_.remove(path);
        host_.seen_at.erase(path);
        return reply_ == sim_reply::io_error ? error(EIO) : std::error_code();
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

}  // namespace support
