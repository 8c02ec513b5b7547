#include "sweep.hpp"

#include "fslock/error.hpp"
#include "system_code.hpp"

namespace fslock::core {
namespace {

/// What a look came to, as far as that ends it: `removed` says that the file may go.
sweep_outcome outcome_of(const finding& f) {
    sweep_outcome out;
    out.judged = f.judged;
    out.writer = f.evidence.rec;
    switch (f.state) {
        case reading::absent: out.state = sweeping::gone; break;
        case reading::failed:
        case reading::unsteady:
            out.state = sweeping::failed;
            out.error = f.error;
            break;
        case reading::seen: out.state = f.judged.what == fate::dead ? sweeping::removed : sweeping::kept; break;
    }
    if (f.state == reading::seen && f.judged.what == fate::not_a_lock) out.error = errc::not_a_lock_file;
    return out;
}

/// A file of our own beside the lock: what shows whether a wrong one could be put back.
task<os::result<prepared>> own_file(contender& c) {
    prepared p;
    p.temp = c.where.private_path(c.world);
    auto made = co_await c.world.create(p.temp, 0600, c.where.kind());
    if (!made) co_return made.error();
    p.file = std::move(made->file);
    p.facts = made->facts;
    co_return p;
}

/// Whether anything but time proves the death of who wrote the file.
bool is_proved(const finding& f) {
    const auto p = f.judged.proof;
    if (p == proof::witness_free) return true;
    const bool by_process = p == proof::process_gone || p == proof::process_reused;
    return by_process && f.evidence.rec.pid_ns.has_value();
}

/// Whether who made the temp may live, as far as its pid says. A pid that went to another process says nothing.
task<bool> maker_may_live(contender& c, const finding& f, int maker) {
    if (f.judged.proof == proof::process_reused && f.evidence.rec.pid == maker) co_return false;
    const auto p = co_await c.world.process(maker);
    co_return p.life != os::process_facts::state::gone;
}

}  // namespace

task<sweep_outcome> sweep_token(contender& c, const sweep_rules& rules) {
    const auto path = c.where.token_path();
    const auto f = co_await examine(c.world, c.where, path, subject::token, c.opts, c.seen.token, c.mine);
    auto out = outcome_of(f);
    if (out.state != sweeping::removed || rules.dry_run) co_return out;
    auto own = co_await own_file(c);
    out.error = own.error();
    out.state = sweeping::failed;
    if (out.error) co_return out;
    const auto done = co_await remove_dead_token(c, path, f, *own);
    (void)co_await discard(c.world, c.where, *own);
    out.error = done.error;
    if (done.state == reclaiming::removed) out.state = sweeping::removed;
    if (done.state == reclaiming::changed) out.state = sweeping::gone;
    if (done.state == reclaiming::blocked) out.state = sweeping::kept;  // somebody else is at it
    co_return out;
}

task<sweep_outcome> sweep_temp(contender& c, const std::string& path, int maker, const sweep_rules& rules) {
    const auto f = co_await examine(c.world, c.where, path, subject::lock, c.opts, c.seen.lock, c.mine);
    auto out = outcome_of(f);
    if (out.state != sweeping::removed) co_return out;
    out.state = sweeping::kept;
    if (!is_proved(f) && f.judged.silence <= rules.temp_grace) co_return out;
    const bool may_live = co_await maker_may_live(c, f, maker);
    if (may_live) co_return out;
    // Nobody else ever makes a file of this name: what is there is what was judged.
    if (!rules.dry_run) out.error = co_await c.world.unlink(path);
    out.state = out.error ? sweeping::failed : sweeping::removed;
    if (is(out.error, ENOENT)) {
        out.error = {};
        out.state = sweeping::gone;
    }
    co_return out;
}

}  // namespace fslock::core
