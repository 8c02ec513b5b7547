// The whole library on a system whose calls fail, one after the other: once, and for ever.
#include <unistd.h>

#include <asio/io_context.hpp>
#include <boost/test/unit_test.hpp>
#include <map>
#include <optional>
#include <sstream>
#include <thread>

#include "core/record.hpp"
#include "engine/asking.hpp"
#include "engine/crafted.hpp"
#include "failing_calls.hpp"
#include "fslock/fslock.hpp"
#include "in_memory.hpp"
#include "os/posix_world.hpp"

namespace {

namespace asio = fslock::asio;
namespace calls = faults::calls;
using namespace support;
using fslock::error_code;
using fslock::lock_guard;

constexpr auto limit = 60ms;     // how long somebody tries while calls fail
constexpr auto a_while = 10ms;   // two beats or three looks
constexpr auto generous = 5s;    // for what has to come

fslock::options quick() {
    fslock::options o;
    o.heartbeat_interval = 4ms;
    o.stale_after = 30ms;
    o.foreign_stale_after = 60ms;
    o.foreign_confirm = 12ms;
    o.malformed_grace = 30ms;
    o.poll_interval = 3ms;
    return o;
}

struct outcome {
    error_code ec;
    lock_guard lock;
    bool done = false;
};

/// What a scenario plays on.
struct stage {
    stage() : path(dir / fresh_name()) {}

    /// Runs the context until `done`; false when that does not come.
    [[nodiscard]] bool run(const bool& done) {
        const auto end = std::chrono::steady_clock::now() + generous;
        while (!done && std::chrono::steady_clock::now() < end) {
            io->restart();
            (void)io->run_one_for(50ms);
        }
        return done;
    }
    void run_for(milliseconds time) {
        io->restart();
        (void)io->run_for(time);
    }
    /// Asks; out of an initiating function may come what the context could not have.
    void ask(outcome& out, std::optional<milliseconds> time) {
        const auto done = [&out](error_code ec, lock_guard got) {
            out.ec = ec;
            out.lock = std::move(got);
            out.done = true;
        };
        try {
            if (time) {
                fslock::async_try_acquire(*io, path, *time, quick(), done);
            } else {
                fslock::async_acquire(*io, path, quick(), done);
            }
        } catch (const fslock::system_error& e) {
            done(e.code(), lock_guard());
        }
    }
    void note(const lock_guard& of) { stamps.push_back(fslock::core::epoch_stamp(of.writer_epoch())); }

    directory dir;
    std::filesystem::path path;
    std::optional<asio::io_context> io{std::in_place};
    lock_guard lock;   ///< of this context
    lock_guard other;  ///< of another one
    std::vector<std::int64_t> stamps;
};

// ---- looking at what came of it; "" or what is wrong -----------------------------------------------------------

/// A cause that was injected, or one that follows: a thread that is not to be had, a record that is in the way.
std::string is_clean(error_code ec) {
    if (!ec || calls::codes().contains(ec.value())) return {};
    if (ec == std::errc::resource_unavailable_try_again || ec == std::errc::device_or_resource_busy) return {};
    return "another cause: " + ec.message();
}

/// With the fault gone, what was acquired is whole.
std::string look_at(stage& s, lock_guard& lock, error_code ec) {
    calls::disarm();
    if (!lock) return is_clean(ec);
    if (ec) return "a lock and an error";
    if (s.other) return "two owners";
    s.note(lock);
    if (lock.lost()) return "a fault is taken for a loss";
    error_code failed;
    if (!lock.verify(failed)) return "owned, but it does not verify: " + failed.message();
    if (read_file(s.path).find(lock.writer_epoch()) == std::string::npos) return "owned, but by another record";
    lock.release(failed);
    return failed ? "cannot be released: " + failed.message() : std::string();
}

bool soon(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + generous;
    while (!condition() && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(1ms);
    return condition();
}

std::string descriptors_in_words() {
    std::string all;
    std::error_code ec;
    for (const auto& e : std::filesystem::directory_iterator("/proc/self/fd"))
        all += ' ' + e.path().filename().native() + ':' + std::filesystem::read_symlink(e.path(), ec).native();
    return all;
}

bool knows_any(const std::vector<std::int64_t>& stamps) {
    return std::any_of(stamps.begin(), stamps.end(),
                       [](std::int64_t stamp) { return fslock::os::this_world().knows_epoch(stamp); });
}

/// The context is gone: nothing beats, nothing is open, and the lock is to be had.
std::string look_around(stage& s, std::size_t descriptors) {
    calls::disarm();
    s.other = {};
    s.lock = {};
    s.io.reset();
    if (!soon([&] { return open_descriptors() <= descriptors; })) return "a descriptor is left open, of " + std::to_string(descriptors) + ":" + descriptors_in_words();
    if (!soon([&] { return !knows_any(s.stamps); })) return "an epoch is not forgotten";
    error_code ec;
    auto next = fslock::try_acquire(s.path, generous, quick(), ec);
    if (!next) return "the next one does not get the lock: " + ec.message();
    if (auto wrong = look_at(s, next, ec); !wrong.empty()) return "the next one: " + wrong;
    for (const auto& name : s.dir.names())
        if (name.find(".tmp.") == std::string::npos && name.find(".reclaim") == std::string::npos)
            return name + " is there in the end";
    return {};
}

// ---- scenarios -------------------------------------------------------------------------------------------------

std::string acquire(stage& s) {
    outcome out;
    s.ask(out, limit);
    if (!s.run(out.done)) return "no answer";
    if (out.lock) {
        error_code ec;
        (void)out.lock.verify(ec);
        if (auto wrong = is_clean(ec); !wrong.empty()) return wrong;
        s.run_for(a_while);
    }
    return look_at(s, out.lock, out.ec);
}

std::string acquire_blocking(stage& s) {
    error_code ec;
    auto lock = fslock::try_acquire(s.path, limit, quick(), ec);
    return look_at(s, lock, ec);
}

/// Whoever waits without a limit gets the lock, once nothing fails any more.
std::string outwait(stage& s, const std::function<void()>& make_room) {
    outcome out;
    s.ask(out, {});
    s.run_for(a_while);
    if (!out.done || !out.lock) {
        calls::disarm();
        make_room();
        if (!s.run(out.done)) return "a waiter is stuck";
    }
    return look_at(s, out.lock, out.ec);
}

std::string outwait_owner(stage& s) {
    return outwait(s, [&] { s.other = {}; });
}

std::string outwait_process(stage& s) {
    return outwait(s, [&] { std::filesystem::remove(s.path); });
}

/// Let go while calls fail.
std::string outwait_at_once(stage& s) {
    outcome out;
    s.ask(out, limit);
    s.run_for(a_while);
    s.note(s.other);
    error_code ec;
    s.other.release(ec);
    if (auto wrong = is_clean(ec); !wrong.empty()) return wrong;
    if (!s.run(out.done)) return "no answer";
    return look_at(s, out.lock, out.ec);
}

std::string release(stage& s) {
    bool done = false;
    error_code came;
    s.note(s.lock);
    s.lock.async_release([&](error_code ec) {
        came = ec;
        done = true;
    });
    if (!s.run(done)) return "no answer";
    if (!came && std::filesystem::exists(s.path)) return "released, but its record is there";
    return is_clean(came);
}

/// Whoever waits for a loss is told when it comes, and not before.
std::string await_loss(stage& s) {
    bool done = false;
    error_code came;
    s.note(s.lock);
    s.lock.async_wait_lost([&](error_code ec) {
        came = ec;
        done = true;
    });
    s.run_for(a_while);
    calls::disarm();
    if (done) return came ? is_clean(came) : std::string("a fault is taken for a loss");
    std::filesystem::remove(s.path);
    if (!s.run(done)) return "not told of the loss";
    return came ? "told of something else: " + came.message() : std::string();
}

void hold(stage& s) { s.other = fslock::acquire(s.path, quick()); }

void own(stage& s) {
    outcome out;
    s.ask(out, generous);
    if (!s.run(out.done) || !out.lock) throw std::runtime_error("no lock to own");
    s.lock = std::move(out.lock);
}

void own_without_witness(stage& s) {
    auto o = quick();
    o.witness = fslock::witness::off;
    bool done = false;
    fslock::async_acquire(*s.io, s.path, o, [&](error_code, lock_guard lock) {
        s.lock = std::move(lock);
        done = true;
    });
    if (!s.run(done) || !s.lock) throw std::runtime_error("no lock to own");
}

struct scenario {
    const char* name;
    void (*set)(stage&);
    std::string (*play)(stage&);
};

constexpr scenario scenarios[] = {
    {"acquire", [](stage&) {}, acquire},
    {"acquire blocking", [](stage&) {}, acquire_blocking},
    {"behind a killed owner", [](stage& s) { peer_record(dead_pid).text("guard", "ofd").write(s.path); }, acquire},
    {"behind an owner whose process is gone", [](stage& s) { peer_record(dead_pid).write(s.path, 1h); }, acquire},
    {"outwait an owner", hold, outwait_owner},
    {"outwait an owner who lets go meanwhile", hold, outwait_at_once},
    {"outwait a process", [](stage& s) { peer_record(::getppid()).write(s.path); }, outwait_process},
    {"release", own, release},
    {"release without a witness", own_without_witness, release},
    {"await a loss", own, await_loss},
    {"await a loss without a witness", own_without_witness, await_loss},
};

struct result_of_run {
    std::string wrong;
    unsigned failed = 0;
    std::string what;
};

result_of_run play(const scenario& s, const calls::plan& p, std::size_t descriptors) {
    result_of_run r;
    stage there;
    try {
        s.set(there);
        calls::arm(p);
        r.wrong = s.play(there);
    } catch (const std::exception& e) {
        r.wrong = std::string("thrown: ") + e.what();
    }
    calls::disarm();
    r.failed = calls::failed();
    r.what = calls::first_failed();
    if (r.wrong.empty()) r.wrong = look_around(there, descriptors);
    return r;
}

/// How many descriptors there are when the context of the blocking twins has all that it ever needs.
std::size_t keeps_for_good() {
    {
        stage s;
        own(s);
        error_code ec;
        const auto none = fslock::try_acquire(s.path, a_while, quick(), ec);
        if (none || ec) throw std::runtime_error("no wait");
    }
    std::this_thread::sleep_for(a_while);  // more than enough for it to come to rest, and one more would be no harm
    return open_descriptors();
}

/// Until nothing fails any more, which is when nothing is called any more while calls may fail.
void fail_every_call(const scenario& s, std::size_t descriptors, unsigned long& runs, unsigned long& injected, std::set<std::string>& kinds) {
    std::map<std::string, std::string> problems;
    for (const bool for_ever : {false, true}) {
        for (unsigned at = 1;; ++at) {
            calls::plan p;
            p.at = at;
            p.for_ever = for_ever;
            const auto r = play(s, p, descriptors);
            ++runs;
            if (r.failed == 0) break;
            injected += r.failed;
            kinds.insert(r.what);
            std::ostringstream text;
            text << "call " << at << ", " << r.what << ", " << (for_ever ? "for ever" : "once");
            if (!r.wrong.empty()) BOOST_TEST_MESSAGE(s.name << ": " << r.wrong << ": " << text.str());
            if (!r.wrong.empty()) problems.try_emplace(r.wrong, text.str());
        }
    }
    for (const auto& [wrong, first] : problems) BOOST_ERROR(s.name << ": " << wrong << " (first: " << first << ")");
}

}  // namespace

/// The first case: afterwards there are threads that wait for more to do.
BOOST_AUTO_TEST_CASE(when_no_thread_is_to_be_had_an_acquisition_says_so_and_the_next_one_is_as_always) {
    calls::plan no_threads;
    no_threads.at = 1;
    no_threads.for_ever = true;
    no_threads.only = "pthread_create";
    const auto none = std::make_error_code(std::errc::resource_unavailable_try_again);
    stage s;
    calls::arm(no_threads);
    outcome out;
    s.ask(out, limit);
    BOOST_TEST(s.run(out.done));
    BOOST_TEST(out.ec == none, out.ec.message());
    error_code ec;
    BOOST_TEST(!fslock::try_acquire(s.path, limit, quick(), ec));
    BOOST_TEST(ec == none, ec.message());
    BOOST_TEST(calls::failed() >= 2U);
    calls::disarm();
    BOOST_TEST(s.dir.empty());
    BOOST_TEST(acquire(s) == "");
    BOOST_TEST(acquire_blocking(s) == "");
}

BOOST_AUTO_TEST_CASE(whatever_system_call_fails_nobody_is_stuck_and_nothing_is_in_the_way) {
    const auto descriptors = keeps_for_good();
    unsigned long runs = 0;
    unsigned long injected = 0;
    std::set<std::string> kinds;
    for (const auto& s : scenarios) {
        const auto before = runs;
        fail_every_call(s, descriptors, runs, injected, kinds);
        BOOST_TEST(runs - before > 2, s.name << ": nothing failed");
        BOOST_TEST_MESSAGE(s.name << ": " << runs - before << " runs");
    }
    std::string all;
    for (const auto& k : kinds) all += ' ' + k;
    BOOST_TEST_MESSAGE(runs << " runs, " << injected << " faults, of" << all);
    for (const char* const must : {"open64", "unlink"}) BOOST_TEST(kinds.contains(must), must << " never failed");
}

/// The last case: what the library learns here it does not forget.
BOOST_AUTO_TEST_CASE(where_a_descriptor_may_not_be_linked_its_name_in_proc_is,
                     *boost::unit_test::precondition(support::linux_facilities)) {
    calls::plan refused;
    refused.at = 1;
    refused.code = ENOENT;
    refused.only = "linkat";
    const support::directory d;
    error_code ec;
    { const auto known = fslock::try_acquire(d / "x", limit, quick(), ec); }
    calls::arm(refused);
    BOOST_TEST(static_cast<bool>(fslock::try_acquire(d / "x", limit, quick(), ec)), ec.message());
    BOOST_TEST(calls::failed() == 1U);
    BOOST_TEST(calls::counted() == 2U);
    refused.at = 0;
    calls::arm(refused);
    BOOST_TEST(static_cast<bool>(fslock::try_acquire(d / "x", limit, quick(), ec)), ec.message());
    BOOST_TEST(calls::counted() == 1U);
    calls::disarm();
}
