#include <algorithm>

#include "simulation.hpp"

namespace support {

int sim_disk::make_inode() {
    int number = 1;
    while (inodes.contains(number)) ++number;
    inodes[number].modified_ns = clock_ns();
    return number;
}

int sim_disk::put(const std::string& path, const std::string& content, std::int64_t age_ns) {
    const int number = make_inode();
    rewrite(number, content);
    inodes[number].modified_ns = clock_ns() - age_ns;
    names[path] = number;
    return number;
}

/// From offset 0 on; what is longer stays longer.
void sim_disk::rewrite(int inode, const std::string& text) {
    auto& i = inodes.at(inode);
    i.content.replace(0, std::min(text.size(), i.content.size()), text);
    i.content_hash = std::hash<std::string>()(i.content);
    i.modified_ns = clock_ns();
}

int sim_disk::links_to(int inode) const {
    return static_cast<int>(
        std::count_if(names.begin(), names.end(), [inode](const auto& n) { return n.second == inode; }));
}

os::file_facts sim_disk::facts_of(int inode) const {
    const auto& i = inodes.at(inode);
    os::file_facts f;
    f.device = 1;
    f.inode = static_cast<std::uint64_t>(inode);
    f.links = static_cast<std::uint64_t>(links_to(inode));
    f.size = i.content.size();
    f.modified_ns = i.modified_ns;
    f.kind = i.kind;
    return f;
}

void sim_disk::tell_of_removal(const sim_process& who, const std::string& name) const {
    for (const auto& told : on_removal) told(who, name, names.at(name));
}

void sim_disk::remove(const std::string& path) {
    const auto at = names.find(path);
    if (at == names.end()) return;
    const int inode = at->second;
    names.erase(at);
    drop_if_unused(inode);
}

void sim_disk::drop_if_unused(int inode) {
    const auto at = inodes.find(inode);
    if (at != inodes.end() && at->second.open == 0 && links_to(inode) == 0) inodes.erase(at);
}

std::uint64_t sim_disk::state() const {
    digest d;
    d.add(static_cast<std::uint64_t>(now_ns));
    for (const auto& [name, inode] : names) {
        d.add(std::hash<std::string>()(name));
        d.add(static_cast<std::uint64_t>(inode));
    }
    for (const auto& [number, i] : inodes) {
        d.add(static_cast<std::uint64_t>(number));
        d.add(static_cast<std::uint64_t>(i.modified_ns));
        d.add(static_cast<std::uint64_t>(i.open) << 1U | static_cast<std::uint64_t>(i.had_name));
        d.add(i.content_hash);
        for (const auto& [lock, holder] : i.locks) {
            d.add(static_cast<std::uint64_t>(lock.first) << 8 | static_cast<std::uint64_t>(lock.second));
            d.add(static_cast<std::uint64_t>(holder.first->pid()) << 8 | static_cast<std::uint64_t>(holder.second));
        }
    }
    return d.value;
}

}  // namespace support
