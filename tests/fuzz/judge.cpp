// The judge: whatever is found, what must never be said of it.
#include <chrono>
#include <string>

#include "bytes.hpp"
#include "core/judge.hpp"
#include "property.hpp"

namespace {

using namespace fslock::core;
using namespace std::chrono_literals;
using fslock::proof;
using fslock::os::fs_class;
using fslock::os::lock_state;
using fslock::os::witness_kind;
using fuzz::require;
using life = fslock::os::process_facts::state;

constexpr auto token_dead_after = 10min;
constexpr auto token_malformed_grace = 60s;
constexpr auto confirm_waived_after = 1h;

/// All that the judge is given.
struct given {
    explicit given(fuzz::bytes from) : self(identity(from)), limits(options(from)), what(evidence_from(from)) {}

    fslock::os::identity self;
    fslock::options limits;
    evidence what;

 private:
    static std::string boot(fuzz::bytes& from) { return from.any_of({"", "boot-a", "boot-b"}); }
    static std::string host(fuzz::bytes& from) { return from.any_of({"", "alpha", "beta"}); }
    static std::optional<std::uint64_t> ticks(fuzz::bytes& from) {
        return from.maybe(static_cast<std::uint64_t>(from.between(1, 3)));
    }

    static fslock::os::identity identity(fuzz::bytes& from) {
        fslock::os::identity me;
        me.pid = 1;
        me.nodename = host(from);
        me.hostname = me.nodename;
        me.start_time = ticks(from);
        me.boot_id = boot(from);
        me.pid_ns = ticks(from);
        return me;
    }
    /// Whatever `fslock::check` lets pass.
    static fslock::options options(fuzz::bytes& from) {
        fslock::options o;
        if (!from.flag()) return o;
        const auto longest = milliseconds(std::chrono::hours(24 * 365 * 10)).count();
        o.stale_after = milliseconds(from.between(1, longest));
        o.foreign_stale_after = milliseconds(from.between(o.stale_after.count(), longest));
        o.foreign_confirm = milliseconds(from.between(0, longest));
        o.malformed_grace = milliseconds(from.between(0, longest));
        o.poll_interval = milliseconds(from.between(1, 60'000));
        require(!check(o), "these options are in their ranges");
        return o;
    }
    static record record_from(fuzz::bytes& from) {
        record r;
        r.pid = static_cast<int>(from.between(1, 2));
        r.hostname = host(from);
        r.boot_id = boot(from);
        r.process_start_time = ticks(from);
        r.pid_ns = ticks(from);
        r.guard = from.any_of({witness_kind::none, witness_kind::ofd, witness_kind::flock});
        r.heartbeat_ms = from.maybe(from.flag() ? from.between(1, 10'000) : from.number<std::int64_t>());
        r.heartbeat_at_ms = from.number<std::int64_t>();
        r.writer_epoch = "1-17";
        return r;
    }
    /// Some time ago, from nothing to far more than any limit; also in the future.
    static std::int64_t ago_ns(fuzz::bytes& from) {
        switch (from.number<std::uint8_t>() % 4) {
            case 0: return from.between(0, 100'000) * 1'000'000;
            case 1: return from.between(-20'000, 700'000) * 1'000'000;
            case 2: return from.between(0, 4'000) * 1'000'000'000;
            default: return from.number<std::int64_t>() / 4;
        }
    }
    static evidence evidence_from(fuzz::bytes& from) {
        constexpr std::int64_t filesystem_now = 1'700'000'000'000'000'000;
        evidence e;
        e.what = from.any_of({subject::lock, subject::token});
        e.kind = from.any_of({content::record, content::record, content::malformed, content::foreign});
        if (e.kind == content::record) e.rec = record_from(from);
        e.filesystem = from.any_of({fs_class::local, fs_class::shared});
        e.witness = from.any_of({lock_state::free, lock_state::held, lock_state::unknown});
        e.removal = from.any_of({lock_state::free, lock_state::held, lock_state::unknown});
        e.process.life = from.any_of({life::gone, life::exists, life::unknown});
        e.process.start_time = ticks(from);
        e.epoch_is_ours = from.flag();
        e.filesystem_now_ns = from.maybe(filesystem_now);
        e.file.modified_ns = filesystem_now - ago_ns(from);
        e.now = steady(std::chrono::hours(24 * 365 * 20));
        e.seen.silent_since = e.now - std::chrono::nanoseconds(ago_ns(from));
        e.seen.last_change = from.maybe(e.now - std::chrono::nanoseconds(ago_ns(from)));
        return e;
    }
};

/// What the properties speak of, worked out apart from the judge.
struct view {
    explicit view(const given& g)
        : e(g.what),
          pace(interval_of(e.rec)),
          watched(std::chrono::duration_cast<milliseconds>(std::max(e.now - e.seen.silent_since, 0ns))),
          by_witness(e.kind == content::record && e.filesystem == fs_class::local &&
                     e.rec.guard != witness_kind::none && e.witness != lock_state::unknown),
          same_boot(!e.rec.boot_id.empty() && e.rec.boot_id == g.self.boot_id),
          same_namespace(same_boot && e.rec.pid_ns && e.rec.pid_ns == g.self.pid_ns),
          known_process(e.process.life == life::exists && e.rec.process_start_time && e.process.start_time) {
        silence = watched;
        if (e.filesystem_now_ns)
            silence = std::max(silence, milliseconds(*e.filesystem_now_ns / 1'000'000 - e.file.modified_ns / 1'000'000));
        const bool named = e.rec.boot_id.empty() || g.self.boot_id.empty();
        const bool maybe_here = !e.rec.pid_ns && (named ? e.rec.hostname == g.self.nodename : same_boot);
        const bool earlier_boot = e.filesystem == fs_class::local && !named && !same_boot;
        elsewhere = !same_namespace && !maybe_here && !earlier_boot;
        process_lives = known_process && *e.rec.process_start_time == *e.process.start_time &&
                        (e.rec.pid != g.self.pid || e.epoch_is_ours);
        process_dead = e.process.life == life::gone ||
                       (known_process && *e.rec.process_start_time != *e.process.start_time);
        old_token = e.what == subject::token && e.witness != lock_state::held && silence > token_dead_after;
    }

    const evidence& e;
    milliseconds pace;
    milliseconds watched;
    milliseconds silence{};
    bool by_witness;
    bool same_boot;
    bool same_namespace;
    bool known_process;
    bool elsewhere = false;      ///< neither this boot nor an earlier one of this machine, as far as it says
    bool process_lives = false;
    bool process_dead = false;
    bool old_token = false;
};

void witness_alone_decides(const view& g, const verdict& v) {
    if (g.e.witness == lock_state::held) {
        require(v.what == fate::alive && v.proof == proof::witness_held, "an owner with a witness lives");
    } else if (g.e.removal == lock_state::held) {
        require(v.what == fate::being_reclaimed, "byte 1 held: somebody removes it");
    } else {
        require(v.what == fate::dead && v.proof == proof::witness_free, "an owner without its witness is dead");
    }
}

/// REQUIRES: not by its witness, not an old token.
void dead_for_a_reason(const view& g, const verdict& v, const fslock::options& limits) {
    const auto stale = std::max(limits.stale_after, 3 * g.pace);
    const auto foreign = std::max(limits.foreign_stale_after, 3 * g.pace);
    if (g.e.kind == content::malformed) {
        const milliseconds grace = g.e.what == subject::token ? token_malformed_grace : limits.malformed_grace;
        require(g.silence > grace, "a damaged record has its grace");
        require(g.e.filesystem == fs_class::shared || g.e.witness == lock_state::free, "and no witness");
    } else if (g.same_namespace) {
        require(!g.process_lives, "a process that lives is not dead");
        require(g.process_dead || g.silence > stale, "no proof without silence");
    } else if (g.elsewhere) {
        require(g.silence > foreign, "another host's owner is silent for long");
        const bool confirmed = g.watched >= std::max(limits.foreign_confirm, 3 * g.pace);
        require(confirmed || g.silence > confirm_waived_after, "and we have seen it");
        require(v.proof == proof::silent, "and that is the proof");
    } else {
        require(g.silence > stale, "whoever may be elsewhere is silent");
    }
}

void never_said(const given& all, const verdict& v) {
    const view g(all);
    require((v.what == fate::not_a_lock) == (g.e.kind == content::foreign), "all but the foreign are locks");
    if (g.e.kind == content::foreign) return;
    require(v.silence == g.silence, "silence is the age, or what we watched");
    if (g.by_witness) return witness_alone_decides(g, v);
    require(v.what != fate::being_reclaimed, "only a witness tells of a removal");
    require(v.what != fate::unknown || (v.look_again_after && *v.look_again_after >= 0ms), "unknown: look again");
    if (v.what != fate::dead) return;
    require(v.proof != proof::none, "death is proved");
    require(!g.e.seen.last_change || g.e.now - *g.e.seen.last_change >= 3 * g.pace, "who was seen to beat is not dead");
    if (!g.old_token) dead_for_a_reason(g, v, all.limits);
}

/// Silence never brings anybody back to life.
void longer_silence_is_no_life(given all, const verdict& v) {
    if (v.what != fate::dead || !all.what.filesystem_now_ns) return;
    all.what.file.modified_ns -= 3'600'000'000'000;
    require(judge(all.what, all.self, all.limits).what == fate::dead, "the dead stay dead");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const given all(fuzz::bytes(data, size));
    const auto v = judge(all.what, all.self, all.limits);
    never_said(all, v);
    longer_silence_is_no_life(all, v);
    const auto again = judge(all.what, all.self, all.limits);
    require(again.what == v.what && again.proof == v.proof, "the same evidence, the same verdict");
    return 0;
}
