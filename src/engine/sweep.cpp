// The compiled half of fslock/sweep.hpp: goes through directories, and leaves each file to core::sweep_*.
#include "fslock/sweep.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <string>

#include "../core/reports.hpp"
#include "../core/sweep.hpp"
#include "../os/listing.hpp"
#include "../os/per_process.hpp"
#include "../os/posix_world.hpp"
#include "blocking.hpp"
#include "fslock/error.hpp"

namespace fslock {
namespace {

namespace fs = std::filesystem;

bool in_range(const sweep_options& o) {
    const auto inside = [](const fs::path& p) {
        return !p.empty() && !p.is_absolute() && std::find(p.begin(), p.end(), "..") == p.end();
    };
    return o.temp_grace >= std::chrono::minutes(1) && o.at_most_every >= std::chrono::milliseconds(0) &&
           std::all_of(o.domains.begin(), o.domains.end(), inside);
}

/// When this process last began to sweep each root. Thread-safe.
class cadence {
 public:
    bool begins(const fs::path& root, core::steady now, std::chrono::milliseconds at_most_every) {
        const std::lock_guard lock(mutex_);
        const auto [at, first] = last_.try_emplace(root, now);
        if (!first && now - at->second < at_most_every) return false;
        at->second = now;
        return true;
    }

 private:
    std::mutex mutex_;
    std::map<fs::path, core::steady> last_;
};

constinit os::per_process<cadence> sweeps;

core::task<os::result<os::directory_facts>> classify(os::world& w, std::string path) {
    co_return co_await w.classify(path);
}

class sweeper {
 public:
    sweeper(os::world& w, const sweep_options& o) : w_(w), o_(o), left_(o.most_entries) {}

    /// Looks into `top`, whose listing may be an error, and into what is below it.
    void go_through(const fs::path& top, os::last_link what) {
        open_.push_back({top, 0});
        while (!open_.empty()) {
            const auto next = std::move(open_.back());
            open_.pop_back();
            look_into(next.path, next.depth, next.depth == 0 ? what : os::last_link::refuse);
        }
    }

    /// The same for a domain, none of whose parts may be a symbolic link.
    void go_through_domain(const fs::path& root, const fs::path& domain) {
        auto top = root;
        for (const auto& part : domain) {
            if (part.empty() || part == ".") continue;
            top /= part;
            const auto found = os::list_directory(top.native(), 0, os::last_link::refuse);
            if (found) continue;
            if (found.error() != std::errc::no_such_file_or_directory) skip(top, found.error());
            return;
        }
        go_through(top, os::last_link::refuse);
    }

    [[nodiscard]] std::size_t removed() const noexcept { return removed_; }
    /// Where the domains lie, and with other_filesystems off all that is looked at.
    void stay_on(std::uint64_t device) { device_ = device; }

 private:
    struct to_do {
        fs::path path;
        unsigned depth;
    };

    void look_into(const fs::path& directory, unsigned depth, os::last_link what) {
        const auto found = os::list_directory(directory.native(), left_, what);
        if (!found) {
            // A domain that was never used, or something that was removed meanwhile.
            if (found.error() != std::errc::no_such_file_or_directory) skip(directory, found.error());
            return;
        }
        if (!o_.other_filesystems && found->directory.device != device_) {
            skip(directory, std::make_error_code(std::errc::cross_device_link));
            return;
        }
        left_ -= found->entries.size();
        if (!found->whole) skip(directory, errc::limit_reached);
        std::shared_ptr<const core::directory> where;
        std::vector<fs::path> below;
        for (const auto& entry : found->entries) {
            if (entry.kind == os::file_kind::directory && depth < o_.depth) below.push_back(directory / entry.name);
            const auto name = core::side_name_of(entry.name);
            if (entry.kind != os::file_kind::regular || name.what == core::side::nothing) continue;
            if (!where) where = classified(directory);
            if (!where) return;
            look_at(directory / entry.name, name, where);
        }
        for (auto at = below.rbegin(); at != below.rend(); ++at) open_.push_back({*at, depth + 1});
    }

    std::shared_ptr<const core::directory> classified(const fs::path& directory) {
        const auto facts = core::run_to_end(classify(w_, directory.native()));
        if (facts) return std::make_shared<const core::directory>(directory.native(), *facts);
        skip(directory, facts.error());
        return nullptr;
    }

    void look_at(const fs::path& file, const core::side_name& name,
                 const std::shared_ptr<const core::directory>& directory) {
        core::place where;
        where.where = directory;
        where.lock.full = (file.parent_path() / name.lock).native();
        where.lock.name_at = where.lock.full.size() - name.lock.size();
        engine::blocking_sleeper sleeper;
        engine::silent_reporter nobody;
        core::sightings fresh;
        const options limits;
        core::contender c(w_, where, limits, sleeper, nobody, fresh);
        core::sweep_rules rules;
        rules.temp_grace = o_.temp_grace;
        rules.dry_run = o_.dry_run;
        tell(file, name.what == core::side::token
                       ? core::run_to_end(core::sweep_token(c, rules))
                       : core::run_to_end(core::sweep_temp(c, file.native(), name.maker, rules)));
    }

    void tell(const fs::path& file, const core::sweep_outcome& out) {
        if (out.state == core::sweeping::gone) return;
        swept_file f;
        f.path = file;
        f.writer = core::describe(out.writer, w_.self());
        f.proof = out.judged.proof;
        f.age = out.judged.silence;
        f.error = detail::to_public(out.error);
        const bool removed = out.state == core::sweeping::removed;
        removed_ += static_cast<std::size_t>(removed);
        const auto& told = removed ? o_.on_removed : o_.on_skipped;
        if (told) told(f);
    }

    void skip(const fs::path& what, std::error_code why) const {
        if (!o_.on_skipped) return;
        swept_file f;
        f.path = what;
        f.error = detail::to_public(why);
        o_.on_skipped(f);
    }

    os::world& w_;
    const sweep_options& o_;
    std::size_t left_;
    std::uint64_t device_ = 0;
    std::size_t removed_ = 0;
    std::vector<to_do> open_;
};

}  // namespace

std::size_t sweep(const fs::path& root, const sweep_options& o, error_code& ec) {
    ec = {};
    if (!in_range(o)) ec = errc::bad_options;
    auto& w = os::this_world();
    auto top = ec ? root : fs::absolute(root, ec).lexically_normal();
    if (ec) return 0;
    if (!top.has_filename()) top = top.parent_path();
    const auto here = os::list_directory(top.native(), 0, os::last_link::follow);
    ec = detail::to_public(here.error());
    if (ec || !sweeps.get().begins(top, w.now(), o.at_most_every)) return 0;
    sweeper s(w, o);
    s.stay_on(here->directory.device);
    if (o.domains.empty()) s.go_through(top, os::last_link::follow);
    for (const auto& domain : o.domains) s.go_through_domain(top, domain);
    return s.removed();
}

std::size_t sweep(const fs::path& root, const sweep_options& o) {
    error_code ec;
    const auto removed = sweep(root, o, ec);
    if (ec) throw system_error(ec, root.string());
    return removed;
}

}  // namespace fslock
