#include "examine.hpp"

namespace fslock::core {
namespace {

using os::fs_class;
using os::lock_byte;
using os::lock_state;
using os::witness_kind;

/// By the clock of the filesystem. Where we have no file of our own to ask it with, a local filesystem has our clock.
task<std::optional<std::int64_t>> filesystem_now(os::world& w, const place& where, const prepared& mine) {
    // A record that may be visible must not be made to look fresh.
    if (mine.ready() && !mine.in_doubt) {
        const auto now = co_await w.touch(mine.file);
        if (now) co_return *now;
    }
    if (!where.shared()) co_return w.wall_ns();
    const auto temp = where.private_path(w);
    const auto made = co_await w.create(temp, 0600, where.kind());
    if (!made) co_return std::nullopt;
    const auto now = co_await w.touch(made->file);
    (void)co_await w.unlink(temp);
    if (!now) co_return std::nullopt;
    co_return *now;
}

/// What a file that is no record is to us. A damaged record has one name, or a second one that it was prepared
/// under; another name belongs to somebody's data.
task<content> kind_of(os::world& w, const place& where, const read_outcome& read, const options& o) {
    const auto& facts = read.facts;
    if (read.what.kind == content::record || facts.kind != os::file_kind::regular) co_return read.what.kind;
    if (o.foreign_content == foreign_content::reclaim) co_return content::malformed;
    if (read.what.kind == content::foreign || facts.links <= 1) co_return read.what.kind;
    if (facts.links > 2) co_return content::foreign;
    const bool is_temp = co_await w.has_name(where.where->path, where.temp_prefix(), facts);
    co_return is_temp ? content::malformed : content::foreign;
}

/// A damaged record does not say which lock its writer holds; its writer is of our kind or of none.
witness_kind kind_to_probe(os::world& w, const evidence& e) {
    if (e.filesystem == fs_class::shared) return witness_kind::none;
    if (e.kind == content::record) return e.rec.guard;
    return w.system_witness();
}

task<bool> probe_witness(os::world& w, const os::file& file, evidence& e) {
    const auto kind = kind_to_probe(w, e);
    if (kind == witness_kind::none) co_return false;
    e.witness = co_await w.probe(file, lock_byte::witness, kind);
    // In this order: a reclaimer gives byte 1 back only after the record is gone or was left alone.
    if (e.witness == lock_state::free && kind == witness_kind::ofd)
        e.removal = co_await w.probe(file, lock_byte::removal, kind);
    if (e.kind == content::malformed && e.removal == lock_state::held) e.witness = lock_state::held;
    co_return true;
}

/// All that rows 2 to 6 ask for.
task<bool> gather(os::world& w, const place& where, const options& o, evidence& e, observation& seen,
                  const prepared& mine) {
    if (e.kind == content::record && needs_process(e.rec, w.self())) e.process = co_await w.process(e.rec.pid);
    e.epoch_is_ours = w.knows_epoch(epoch_stamp(e.rec.writer_epoch));
    e.filesystem_now_ns = co_await filesystem_now(w, where, mine);
    e.now = w.now();
    observe(seen, e.rec, e.file, e.now, o);
    e.seen = seen;
    co_return true;
}

}  // namespace

task<finding> examine(os::world& w, const place& where, const std::string& path, subject what, const options& o,
                      observation& seen, const prepared& mine) {
    finding f;
    auto read = co_await read_record_at(w, path, where.kind());
    f.state = read.state;
    f.error = read.error;
    if (read.state != reading::seen) co_return f;
    auto& e = f.evidence;
    e.what = what;
    e.kind = co_await kind_of(w, where, read, o);
    e.rec = std::move(read.what.value);
    e.file = read.facts;
    e.filesystem = where.kind();
    if (e.kind != content::foreign) {
        (void)co_await probe_witness(w, read.file, e);
        const bool by_witness = e.kind == content::record && witness_decides(e);
        if (!by_witness) (void)co_await gather(w, where, o, e, seen, mine);
    }
    f.judged = judge(e, w.self(), o);
    if (!where.shared()) f.file = std::move(read.file);
    co_return f;
}

task<verdict> judge_again(os::world& w, const place& where, const finding& f, const options& o, observation& seen,
                          const prepared& mine, const os::file* removal) {
    auto read = co_await read_again(w, f.file);
    evidence e = f.evidence;
    e.file = read.facts;
    const auto kind = co_await kind_of(w, where, read, o);
    const bool same = read.state == reading::seen && kind == e.kind &&
                      same_acquisition(read.what.value, e.rec);
    if (!same) co_return verdict{};
    e.rec = std::move(read.what.value);
    if (removal == nullptr) {
        (void)co_await probe_witness(w, f.file, e);
    } else {
        // A flock that is ours is the witness lock as well: then nobody else can have it.
        const auto kind_of_lock = kind_to_probe(w, e);
        e.witness = lock_state::free;
        e.removal = lock_state::free;
        if (kind_of_lock == witness_kind::ofd)
            e.witness = co_await w.probe(*removal, lock_byte::witness, kind_of_lock);
    }
    const bool by_witness = e.kind == content::record && witness_decides(e);
    if (!by_witness) (void)co_await gather(w, where, o, e, seen, mine);
    co_return judge(e, w.self(), o);
}

}  // namespace fslock::core
