#include "directories.hpp"

#include <string>

#include "../os/per_process.hpp"

namespace fslock::engine {
namespace {

constexpr std::size_t most_kept = 4096;

core::task<os::result<os::directory_facts>> classify(os::world& w, std::string path) {
    co_return co_await w.classify(path);
}

constinit os::per_process<directories> all;

}  // namespace

directories& directories::instance() { return all.get(); }

std::shared_ptr<const core::directory> directories::known(std::string_view path) {
    const std::lock_guard lock(mutex_);
    const auto at = by_path_.find(path);
    return at == by_path_.end() ? nullptr : at->second;
}

os::result<std::shared_ptr<const core::directory>> directories::look(os::world& w, std::string_view path) {
    const auto facts = core::run_to_end(classify(w, std::string(path)));
    if (!facts) return facts.error();
    const std::lock_guard lock(mutex_);
    if (const auto at = by_path_.find(path); at != by_path_.end()) {
        const auto& was = at->second->facts;
        if (was.file.same_inode(facts->file) && was.kind == facts->kind) return at->second;
        by_path_.erase(at);
    }
    if (by_path_.size() >= most_kept) by_path_.clear();
    auto found = std::make_shared<const core::directory>(std::string(path), *facts);
    by_path_.emplace(found->path, found);
    return std::shared_ptr<const core::directory>(found);
}

}  // namespace fslock::engine
