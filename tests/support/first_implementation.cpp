// A peer that runs the first implementation, boiled down to what others can see of it.
#include <array>

#include "actors.hpp"
#include "core/read_record.hpp"

namespace support {
namespace {

using os::access;
using core::milliseconds;

constexpr milliseconds poll{100};
constexpr milliseconds foreign_stale{75'000};
constexpr std::int64_t damaged_token_ns = 60 * one_second;

core::record own_record(actor& a, const std::string& mark) {
    const auto& self = a.process.self();
    core::record r;
    r.pid = self.pid;
    r.hostname = self.nodename;
    r.process_start_time = self.start_time;
    r.boot_id = self.boot_id;
    r.created_at_ms = r.heartbeat_at_ms = a.process.wall_ns() / 1'000'000;
    r.writer_epoch = mark + std::to_string(self.pid) + '-' + std::to_string(a.process.next_stamp(0));
    return r;
}

bool same_identity(const core::record& x, const core::record& y) {
    return x.pid == y.pid && x.hostname == y.hostname && x.process_start_time == y.process_start_time &&
           x.boot_id == y.boot_id && x.created_at_ms == y.created_at_ms && x.writer_epoch == y.writer_epoch;
}

core::task<bool> lives(actor& a, const core::record& r) {
    const auto p = co_await a.process.process(r.pid);
    if (p.life != os::process_facts::state::exists) co_return false;
    if (!r.process_start_time) co_return true;
    if (p.start_time != r.process_start_time) co_return false;
    co_return r.boot_id.empty() || r.boot_id == a.process.self().boot_id;
}

core::task<core::read_outcome> look(actor& a, const std::string& path) {
    co_return co_await core::read_record_at(a.process, path, a.disk.kind);
}

bool is_record(const core::read_outcome& r) {
    return r.state == core::reading::seen && r.what.kind == core::content::record;
}

/// Compares the whole identity, then unlinks.
core::task<bool> remove_if_owned(actor& a, const std::string& path, const core::record& owner) {
    auto now = co_await look(a, path);
    now.file.close();
    if (!is_record(now) || !same_identity(now.what.value, owner)) co_return false;
    (void)co_await a.process.unlink(path);
    co_return true;
}

core::task<bool> create_token(actor& a) {
    auto made = co_await a.process.create(token_path, 0600, a.disk.kind);
    if (!made) co_return false;
    const auto text = core::format(own_record(a, "reclaim-"));
    (void)co_await a.process.write(made->file, text);
    co_return true;
}

/// Whether a token that is in the way is gone now.
core::task<bool> remove_stale_token(actor& a) {
    auto token = co_await look(a, token_path);
    token.file.close();
    if (token.state == core::reading::absent) co_return true;
    if (!is_record(token)) {
        const bool old = a.process.wall_ns() - token.facts.modified_ns > damaged_token_ns;
        if (old) (void)co_await a.process.unlink(token_path);
        co_return old;
    }
    if (token.what.value.hostname != a.process.self().nodename) co_return false;
    const bool alive = co_await lives(a, token.what.value);
    if (alive) co_return false;
    co_return co_await remove_if_owned(a, token_path, token.what.value);
}

core::task<bool> reclaim(actor& a, const core::record& judged) {
    bool ours = co_await create_token(a);
    if (!ours) {
        const bool gone = co_await remove_stale_token(a);
        if (!gone) co_return false;
        ours = co_await create_token(a);
        if (!ours) co_return false;
    }
    const bool removed = co_await remove_if_owned(a, lock_path, judged);
    (void)co_await a.process.unlink(token_path);  // without a look
    co_return removed;
}

core::task<bool> claim(actor& a, const core::record& mine) {
    auto made = co_await a.process.create_unnamed("/d", 0600, a.disk.kind);
    if (!made) co_return false;
    a.inode = made->facts.inode;
    const auto text = core::format(mine);
    (void)co_await a.process.write(made->file, text);
    const std::string no_name;
    const auto error = co_await a.process.link(made->file, no_name, lock_path);
    co_return !error;
}

/// False when it has waited in vain.
core::task<bool> wait(actor& a) {
    const auto woken = co_await a.process.sleep(a.process.now() + poll);
    co_return woken == core::wake::due;
}

/// What stands in the way: true means to try again, false that nobody wants it any more.
core::task<bool> deal_with_owner(actor& a) {
    auto there = co_await look(a, lock_path);
    there.file.close();
    if (there.state == core::reading::absent) co_return true;
    if (!is_record(there)) {
        const bool waited = co_await wait(a);
        if (!waited) co_return false;
        auto again = co_await look(a, lock_path);
        again.file.close();
        if (again.state == core::reading::seen && !is_record(again)) (void)co_await a.process.unlink(lock_path);
        co_return true;
    }
    const auto& owner = there.what.value;
    bool alive = a.process.wall_ns() / 1'000'000 - owner.heartbeat_at_ms <= foreign_stale.count();
    if (owner.hostname == a.process.self().nodename) alive = co_await lives(a, owner);
    if (alive) co_return co_await wait(a);
    const bool removed = co_await reclaim(a, owner);
    if (removed) co_return true;
    co_return co_await wait(a);
}

/// A new file renamed over the record.
core::task<bool> beat(actor& a, const core::record& mine) {
    auto now = co_await look(a, lock_path);
    now.file.close();
    if (!is_record(now) || !same_identity(now.what.value, mine)) co_return false;
    const auto temp = lock_path + ".tmp-of-" + std::to_string(a.process.pid());
    auto made = co_await a.process.create(temp, 0600, a.disk.kind);
    if (!made) co_return false;
    auto fresh = mine;
    fresh.heartbeat_at_ms = a.process.wall_ns() / 1'000'000;
    const auto text = core::format(fresh);
    (void)co_await a.process.write(made->file, text);
    (void)co_await a.process.rename(temp, lock_path);
    a.inode = made->facts.inode;
    co_return true;
}

}  // namespace

core::task<int> as_the_first_implementation(actor& a) {
    for (int i = 0; i < a.turns; ++i) {
        a.now = part::contending;
        core::record mine;
        for (;;) {
            mine = own_record(a, "");
            const bool claimed = co_await claim(a, mine);
            if (claimed) break;
            const bool go_on = co_await deal_with_owner(a);
            if (go_on) continue;
            a.gave_up = true;
            a.now = part::ended;
            co_return a.won;
        }
        a.begin_to_own();
        for (int b = 0; b < a.beats; ++b) {
            ++a.process.patience;
            (void)co_await a.process.sleep(a.process.now() + a.nap);
            a.beaten_ns = a.disk.now_ns;
            const bool beaten = co_await beat(a, mine);
            if (!beaten && a.cares) a.lost = true;
        }
        auto now = co_await look(a, lock_path);
        now.file.close();
        const bool ours = is_record(now) && same_identity(now.what.value, mine);
        if (!ours && a.cares) a.lost = true;
        a.now = part::ended;
        if (ours) (void)co_await a.process.unlink(lock_path);
    }
    co_return a.won;
}

}  // namespace support
