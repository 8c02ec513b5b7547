#include "faulty_world.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "os/posix_world.hpp"

namespace faults {
namespace {

using fslock::core::wake;
using fslock::core::watching;

constexpr unsigned too_many_calls = 100'000;

constexpr fault creating[] = {{EMFILE}, {ENFILE}, {EACCES}, {EIO}, {ENOSPC}, {EDQUOT}, {EROFS}, {ESTALE}, {ENOENT}};
constexpr fault creating_unnamed[] = {{EMFILE}, {EACCES}, {EIO}, {ENOSPC}, {ESTALE}, {EOPNOTSUPP}, {EISDIR}};
constexpr fault creating_afar[] = {{EMFILE}, {EACCES}, {EIO}, {ENOSPC}, {EDQUOT}, {EROFS}, {ESTALE},
                                   {EIO, effect::whole}, {EEXIST, effect::whole}};
constexpr fault opening[] = {{EMFILE}, {ENFILE}, {EACCES}, {EIO}, {ESTALE}, {ELOOP}, {ENOMEM}, {EAGAIN}};
constexpr fault reading[] = {{EIO}, {ESTALE}};
constexpr fault looking[] = {{EIO}, {ESTALE}, {EACCES}};
constexpr fault writing[] = {{ENOSPC}, {ENOSPC, effect::half}, {EIO}, {EDQUOT}, {EFBIG}};
constexpr fault touching[] = {{EIO}, {EROFS}, {ESTALE}};
constexpr fault syncing[] = {{EIO}, {ENOSPC}, {EDQUOT}};
constexpr fault linking[] = {{EIO},   {EMLINK}, {EPERM},  {EOPNOTSUPP}, {EDQUOT}, {ENOSPC},
                             {EROFS}, {EACCES}, {ENOENT}, {EXDEV},      {ESTALE}};
constexpr fault linking_afar[] = {{EIO},    {EMLINK}, {EPERM},  {EOPNOTSUPP}, {EDQUOT},
                                  {EACCES}, {ENOENT}, {ESTALE}, {EEXIST, effect::whole}, {EIO, effect::whole},
                                  {ETIMEDOUT, effect::whole}};
constexpr fault renaming[] = {{EIO}, {EACCES}, {EROFS}, {ENOSPC}, {EINVAL}, {EBUSY}};
constexpr fault renaming_afar[] = {{EIO}, {EACCES}, {EINVAL}, {EIO, effect::whole}, {ENOENT, effect::whole}};
constexpr fault renaming_exclusively_afar[] = {{EIO}, {EACCES}, {EINVAL}, {EIO, effect::whole},
                                               {EEXIST, effect::whole}, {ENOENT, effect::whole},
                                               {ETIMEDOUT, effect::whole}};
constexpr fault removing[] = {{EACCES}, {EBUSY}, {EIO}, {EROFS}, {EPERM}};
constexpr fault removing_afar[] = {{EACCES}, {EBUSY}, {EIO}, {ESTALE}, {ENOENT, effect::whole}, {EIO, effect::whole}};
constexpr fault locking[] = {{ENOLCK}};
constexpr fault asking[] = {{ENOMEM}};

}  // namespace

const char* name_of(step s) noexcept {
    static constexpr const char* names[] = {
        "create_unnamed", "create", "open", "read",   "write",     "facts", "facts_at", "touch", "sync", "sync_directory",
        "link", "rename_exclusive", "rename", "unlink", "directory", "lock", "unlock", "probe", "process"};
    return names[static_cast<std::size_t>(s)];
}

std::span<const fault> plausible(step s, os::fs_class on) noexcept {
    const bool afar = on == os::fs_class::shared;
    switch (s) {
        case step::create_unnamed: return creating_unnamed;
        case step::create: return afar ? std::span<const fault>(creating_afar) : creating;
        case step::open: return opening;
        case step::read:
        case step::facts: return reading;
        case step::write: return writing;
        case step::facts_at:
        case step::directory: return looking;
        case step::touch: return touching;
        case step::sync:
        case step::sync_directory: return syncing;
        case step::link: return afar ? std::span<const fault>(linking_afar) : linking;
        case step::rename_exclusive: return afar ? std::span<const fault>(renaming_exclusively_afar) : renaming;
        case step::rename: return afar ? std::span<const fault>(renaming_afar) : renaming;
        case step::unlink: return afar ? std::span<const fault>(removing_afar) : removing;
        case step::lock:
        case step::unlock:
        case step::probe: return locking;
        case step::process: return asking;
    }
    return {};
}

// ---- failing, and dying ----------------------------------------------------------------------------------------

std::optional<fault> faulty_world::next(step s) {
    if (++calls_ > too_many_calls) throw endless();
    if (calls_ == plan_.at) hit_ = s;
    const bool fails = plan_.at != 0 && (calls_ == plan_.at ||
                       (calls_ > plan_.at && (plan_.how_long == extent::all_for_ever ||
                                              (plan_.how_long == extent::same_for_ever && s == hit_))));
    if (!fails) return std::nullopt;
    ++failed_;
    codes_.insert(plan_.what.code);
    return plan_.what;
}

template <class T>
os::call<T> faulty_world::last_words(os::call<T> answer) const {
    if (calls_ == last_) ::_exit(0);
    return answer;
}

template <class T, class Real>
os::call<T> faulty_world::attempt(step s, Real real) {
    const auto f = next(s);
    if (!f) return last_words<T>(real());
    if (f->how == effect::whole) (void)real();
    const std::error_code error(f->code, std::system_category());
    return T(error);
}

bool faulty_world::remembers_epochs() {
    return std::any_of(epochs_.begin(), epochs_.end(),
                       [](std::int64_t stamp) { return os::this_world().knows_epoch(stamp); });
}

// ---- sleeping --------------------------------------------------------------------------------------------------

os::call<wake> faulty_world::sleep(steady until) {
    if (on_sleep) on_sleep(++sleeps_);
    leapt_ += std::max<std::chrono::nanoseconds>(until - now(), std::chrono::nanoseconds(0));
    return wake::due;
}

os::result<watching> faulty_world::watch_record(const std::string&, const os::file_facts&) {
    return tells ? watching::still : watching::never;
}

os::result<watching> faulty_world::watch_process(int) { return tells ? watching::still : watching::never; }

// ---- files -----------------------------------------------------------------------------------------------------

os::call<os::result<os::new_file>> faulty_world::create_unnamed(const std::string& directory, unsigned mode,
                                                                os::fs_class on) {
    return attempt<os::result<os::new_file>>(step::create_unnamed,
                                             [&] { return os::this_world().create_unnamed(directory, mode, on); });
}

os::call<os::result<os::new_file>> faulty_world::create(const std::string& path, unsigned mode, os::fs_class on) {
    const auto before = failed_;
    last_opened_ = path;
    auto answer = attempt<os::result<os::new_file>>(
        step::create, [&] { return os::this_world().create(path, mode, on); });
    if (failed_ != before && plan_.what.how == effect::whole) kept_.insert(path);
    return answer;
}

os::call<os::result<os::file>> faulty_world::open(const std::string& path, os::access how, os::fs_class on) {
    const auto before = failed_;
    last_opened_ = path;
    auto answer =
        attempt<os::result<os::file>>(step::open, [&] { return os::this_world().open(path, how, on); });
    if (failed_ != before) kept_.insert(path);
    return answer;
}

os::call<os::result<std::size_t>> faulty_world::read(const os::file& from, std::span<char> into) {
    const auto before = failed_;
    auto answer = attempt<os::result<std::size_t>>(step::read, [&] { return os::this_world().read(from, into); });
    if (failed_ != before) kept_.insert(last_opened_);
    return answer;
}

os::call<std::error_code> faulty_world::write(const os::file& to, std::string_view data) {
    const auto f = next(step::write);
    if (!f) return last_words<std::error_code>(os::this_world().write(to, data));
    if (f->how == effect::half) (void)os::this_world().write(to, data.substr(0, data.size() / 2));
    return std::error_code(f->code, std::system_category());
}

os::call<os::result<os::file_facts>> faulty_world::facts(const os::file& of) {
    const auto before = failed_;
    auto answer = attempt<os::result<os::file_facts>>(step::facts, [&] { return os::this_world().facts(of); });
    if (failed_ != before) kept_.insert(last_opened_);
    return answer;
}

os::call<os::result<os::file_facts>> faulty_world::facts_at(const std::string& path) {
    const auto before = failed_;
    auto answer = attempt<os::result<os::file_facts>>(step::facts_at, [&] { return os::this_world().facts_at(path); });
    if (failed_ != before) kept_.insert(path);
    return answer;
}

os::call<os::result<std::int64_t>> faulty_world::touch(const os::file& of) {
    return attempt<os::result<std::int64_t>>(step::touch, [&]() -> os::call<os::result<std::int64_t>> {
        auto now = os::this_world().touch(of).await_resume();
        if (now && wall_clock_leaps) *now += leapt_.count();
        return now;
    });
}

os::call<std::error_code> faulty_world::sync(const os::file&) {
    return attempt<std::error_code>(step::sync, [] { return os::call<std::error_code>(std::error_code()); });
}

os::call<std::error_code> faulty_world::sync_directory(const std::string&) {
    return attempt<std::error_code>(step::sync_directory, [] { return os::call<std::error_code>(std::error_code()); });
}

os::call<std::error_code> faulty_world::link(const os::file& of, const std::string& from, const std::string& to) {
    const auto before = failed_;
    auto answer = attempt<std::error_code>(step::link, [&] { return os::this_world().link(of, from, to); });
    if (failed_ != before && !from.empty()) kept_.insert(from);
    return answer;
}

os::call<std::error_code> faulty_world::rename_exclusive(const std::string& from, const std::string& to) {
    const auto before = failed_;
    auto answer = attempt<std::error_code>(step::rename_exclusive,
                                           [&] { return os::this_world().rename_exclusive(from, to); });
    if (failed_ != before) kept_.insert(from);
    return answer;
}

os::call<std::error_code> faulty_world::rename(const std::string& from, const std::string& to) {
    const auto before = failed_;
    auto answer = attempt<std::error_code>(step::rename, [&] { return os::this_world().rename(from, to); });
    if (failed_ != before) kept_.insert(plan_.what.how == effect::whole ? to : from);
    return answer;
}

os::call<std::error_code> faulty_world::unlink(const std::string& path) {
    const auto before = failed_;
    auto answer = attempt<std::error_code>(step::unlink, [&] { return os::this_world().unlink(path); });
    if (failed_ != before) kept_.insert(path);
    return answer;
}

os::call<bool> faulty_world::has_name(const std::string& directory, const std::string& prefix,
                                      const os::file_facts& of) {
    return os::this_world().has_name(directory, prefix, of);
}

os::call<os::result<os::file_facts>> faulty_world::directory(const std::string& path) {
    return attempt<os::result<os::file_facts>>(step::directory, [&] { return os::this_world().directory(path); });
}

os::call<os::result<os::directory_facts>> faulty_world::classify(const std::string& path) {
    return os::this_world().classify(path);
}

// ---- locks and processes ---------------------------------------------------------------------------------------

os::witness_kind faulty_world::system_witness() { return os::this_world().system_witness(); }
os::witness_kind faulty_world::new_witness() { return os::this_world().new_witness(); }

os::call<os::lock_state> faulty_world::lock(const os::file& on, os::lock_byte which, os::witness_kind how) {
    if (next(step::lock)) {
        kept_.insert(last_opened_);
        return os::lock_state::unknown;
    }
    return last_words<os::lock_state>(os::this_world().lock(on, which, how));
}

os::call<std::error_code> faulty_world::unlock(const os::file& on, os::lock_byte which, os::witness_kind how) {
    return attempt<std::error_code>(step::unlock, [&] { return os::this_world().unlock(on, which, how); });
}

os::call<os::lock_state> faulty_world::probe(const os::file& on, os::lock_byte which, os::witness_kind how) {
    if (next(step::probe)) return os::lock_state::unknown;
    return last_words<os::lock_state>(os::this_world().probe(on, which, how));
}

void faulty_world::show_waiting(const os::file& on) { os::this_world().show_waiting(on); }
bool faulty_world::is_waited_for(const os::file& of) { return os::this_world().is_waited_for(of); }
const os::identity& faulty_world::self() { return os::this_world().self(); }

os::call<os::process_facts> faulty_world::process(int pid) {
    if (next(step::process)) return os::process_facts();
    return last_words<os::process_facts>(os::this_world().process(pid));
}

// ---- clocks and epochs -----------------------------------------------------------------------------------------

os::world::steady faulty_world::now() {
    return os::this_world().now() + std::chrono::duration_cast<steady::duration>(leapt_);
}

std::int64_t faulty_world::wall_ns() {
    return os::this_world().wall_ns() + (wall_clock_leaps ? leapt_.count() : 0);
}

std::int64_t faulty_world::next_stamp(std::int64_t floor) { return os::this_world().next_stamp(floor); }

void faulty_world::remember_epoch(std::int64_t stamp) {
    epochs_.insert(stamp);
    os::this_world().remember_epoch(stamp);
}

void faulty_world::forget_epoch(std::int64_t stamp) { os::this_world().forget_epoch(stamp); }
bool faulty_world::knows_epoch(std::int64_t stamp) { return os::this_world().knows_epoch(stamp); }
void faulty_world::close(int handle, unsigned generation) noexcept { os::this_world().close(handle, generation); }

}  // namespace faults
