// A lock that is lost: who is told, of what, and when; and what happens to the work under it.
#include <asio/bind_cancellation_slot.hpp>
#include <asio/bind_executor.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/io_context.hpp>
#include <asio/strand.hpp>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <thread>

#include "asking.hpp"
#include "crafted.hpp"
#include "fslock/fslock.hpp"
#include "support/directory.hpp"
#include "support/run_until.hpp"

/// The operation itself: a function that starts it with a handler, as often as it is called.
struct as_function {};

template <>
class fslock::asio::async_result<as_function, void(fslock::error_code)> {
 public:
    template <class Initiation, class... Args>
    static auto initiate(Initiation initiation, as_function, Args... args) {
        return [initiation, args...](auto handler) { initiation(std::move(handler), args...); };
    }
};

namespace {

using namespace support;
namespace asio = fslock::asio;
using fslock::error_code;
using fslock::event_kind;
using fslock::lock_guard;
using fslock::loss;
using fslock::options;
using std::filesystem::path;

lock_guard acquire_on(asio::io_context& io, const path& p, const options& o) {
    lock_guard got;
    bool done = false;
    fslock::async_acquire(io, p, o, [&](error_code ec, lock_guard lock) {
        BOOST_TEST(!ec);
        got = std::move(lock);
        done = true;
    });
    (void)run_until(io, [&] { return done; });
    return got;
}

/// What a wait for the loss came to.
struct wait_outcome {
    bool done = false;
    error_code error;
};

void wait_lost(lock_guard& lock, wait_outcome& out) {
    lock.async_wait_lost([&](error_code ec) {
        BOOST_TEST(!out.done);
        out.done = true;
        out.error = ec;
    });
}

struct way_to_lose {
    const char* name;
    loss why;
    void (*happens)(const path& directory);
};

const way_to_lose ways_to_lose[] = {
    {"removed", loss::removed, [](const path& d) { std::filesystem::remove(d / "sub/x"); }},
    {"renamed", loss::removed, [](const path& d) { std::filesystem::rename(d / "sub/x", d / "sub/y"); }},
    {"replaced", loss::replaced,
     [](const path& d) {
         peer_record(dead_pid).write(d / "new");
         std::filesystem::rename(d / "new", d / "sub/x");
     }},
    {"the directory is moved", loss::directory_gone,
     [](const path& d) { std::filesystem::rename(d / "sub", d / "elsewhere"); }},
    {"the directory is removed", loss::directory_gone, [](const path& d) { std::filesystem::remove_all(d / "sub"); }},
    {"the directory is replaced", loss::directory_gone,
     [](const path& d) {
         std::filesystem::rename(d / "sub", d / "elsewhere");
         std::filesystem::create_directory(d / "sub");
     }},
};

}  // namespace

BOOST_AUTO_TEST_SUITE(losses)

BOOST_AUTO_TEST_CASE(a_wait_for_the_loss_ends_as_it_happens, *boost::unit_test::precondition(linux_facilities)) {
    for (const auto& way : ways_to_lose) {
        BOOST_TEST_CONTEXT(way.name) {
            const directory d;
            std::filesystem::create_directory(d / "sub");
            asio::io_context io;
            auto lock = acquire_on(io, d / "sub/x", never_beats());
            wait_outcome out;
            wait_lost(lock, out);
            (void)io.run_for(10ms);
            BOOST_TEST(!out.done);
            way.happens(d.path());
            BOOST_TEST(run_until(io, [&] { return out.done; }));
            BOOST_TEST(!out.error);
            BOOST_TEST(lock.lost());
        }
    }
}

BOOST_AUTO_TEST_CASE(on_event_says_what_happened_as_it_happens, *boost::unit_test::precondition(linux_facilities)) {
    for (const auto& way : ways_to_lose) {
        BOOST_TEST_CONTEXT(way.name) {
            const directory d;
            std::filesystem::create_directory(d / "sub");
            asio::io_context io;
            told t;
            auto lock = acquire_on(io, d / "sub/x", t.listening(never_beats()));
            way.happens(d.path());
            BOOST_TEST(run_until(io, [&] { return t.has(event_kind::lost); }));
            const auto said = t.of(event_kind::lost).at(0);
            BOOST_TEST((said.loss == way.why));
            BOOST_TEST((said.error == fslock::errc::lost));
            BOOST_TEST(to_string(said).find(to_string(way.why)) != std::string::npos);
        }
    }
}

BOOST_AUTO_TEST_CASE(without_events_a_loss_is_found_by_the_next_heartbeat) {
    const directory d;
    asio::io_context io;
    auto o = minutes();
    o.events = fslock::events::off;
    auto lock = acquire_on(io, d / "x", o);
    wait_outcome out;
    wait_lost(lock, out);
    std::filesystem::remove(d / "x");
    BOOST_TEST(run_until(io, [&] { return out.done; }));
    BOOST_TEST(!out.error);
}

BOOST_AUTO_TEST_CASE(a_loss_before_the_wait_is_found_at_once) {
    for (const bool known : {false, true}) {
        const directory d;
        asio::io_context io;
        auto lock = acquire_on(io, d / "x", never_beats());
        std::filesystem::remove(d / "x");
        if (known) BOOST_TEST(!lock.verify());
        wait_outcome out;
        wait_lost(lock, out);
        BOOST_TEST(!out.done);  // never inside the call
        BOOST_TEST(run_until(io, [&] { return out.done; }));
        BOOST_TEST(!out.error);
    }
}

BOOST_AUTO_TEST_CASE(a_wait_for_the_loss_ends_with_its_guard) {
    const auto ends = [](const std::function<void(lock_guard&)>& how) {
        const directory d;
        asio::io_context io;
        auto lock = acquire_on(io, d / "x", never_beats());
        wait_outcome first;
        wait_outcome second;
        wait_lost(lock, first);
        wait_lost(lock, second);
        how(lock);
        BOOST_TEST(!first.done);
        BOOST_TEST(run_until(io, [&] { return first.done && second.done; }));
        BOOST_TEST((first.error == asio::error::operation_aborted));
        BOOST_TEST((second.error == asio::error::operation_aborted));
    };
    lock_guard other;
    ends([](lock_guard& lock) { lock.release(); });
    ends([](lock_guard& lock) { lock = lock_guard(); });
    ends([](lock_guard& lock) { const lock_guard destroyed = std::move(lock); });
    ends([](lock_guard& lock) { lock.async_release([](error_code) {}); });
    ends([&](lock_guard& lock) { other = std::move(lock); });
}

BOOST_AUTO_TEST_CASE(a_wait_for_the_loss_may_be_started_more_than_once) {
    const directory d;
    asio::io_context io;
    auto lock = acquire_on(io, d / "x", never_beats());
    const auto wait = lock.async_wait_lost(as_function());
    int calls[] = {0, 0};
    for (int& n : calls) {
        wait([&n](error_code ec) {
            BOOST_TEST((ec == asio::error::operation_aborted));
            ++n;
        });
    }
    lock.release();
    BOOST_TEST(run_until(io, [&] { return calls[0] + calls[1] == 2; }));
    BOOST_TEST(calls[0] == 1);
}

BOOST_AUTO_TEST_CASE(a_wait_for_the_loss_ends_although_the_lock_is_released_as_it_begins) {
    const directory d;
    asio::io_context io;
    for (int round = 0; round < 1'000; ++round) {
        auto lock = acquire_on(io, d / "x", never_beats());
        bool ended = false;
        std::atomic<bool> begins{false};
        std::thread other([&, wait = lock.async_wait_lost(as_function())] {
            begins = true;
            wait([&](error_code) { ended = true; });
        });
        while (!begins) {
        }
        for (std::atomic<int> pause = round % 300; pause > 0; --pause) {
        }
        lock.release();
        other.join();
        BOOST_TEST_REQUIRE(run_until(io, [&] { return ended; }), "goes on in round " << round);
    }
}

BOOST_AUTO_TEST_CASE(an_empty_guard_has_nothing_to_lose) {
    asio::io_context io;
    lock_guard none;
    wait_outcome out;
    none.async_wait_lost(asio::bind_executor(io.get_executor(), [&](error_code ec) {
        out.done = true;
        out.error = ec;
    }));
    BOOST_TEST(!out.done);
    BOOST_TEST(run_until(io, [&] { return out.done; }));
    BOOST_TEST((out.error == asio::error::operation_aborted));
}

BOOST_AUTO_TEST_CASE(every_kind_of_cancellation_ends_a_wait_for_the_loss_and_not_the_lock) {
    using asio::cancellation_type;
    for (const auto how : {cancellation_type::total, cancellation_type::partial, cancellation_type::terminal}) {
        const directory d;
        asio::io_context io;
        auto lock = acquire_on(io, d / "x", never_beats());
        asio::cancellation_signal stop;
        wait_outcome out;
        lock.async_wait_lost(asio::bind_cancellation_slot(stop.slot(), [&](error_code ec) {
            out.done = true;
            out.error = ec;
        }));
        stop.emit(how);
        BOOST_TEST(run_until(io, [&] { return out.done; }));
        BOOST_TEST((out.error == asio::error::operation_aborted));
        stop.emit(how);  // too late, and harmless
        BOOST_TEST(lock.verify());
    }
}

BOOST_AUTO_TEST_CASE(a_wait_for_the_loss_completes_where_its_handler_belongs) {
    const directory d;
    asio::io_context io;
    auto lock = acquire_on(io, d / "x", never_beats());
    auto strand = asio::make_strand(io);
    bool there = false;
    bool done = false;
    lock.async_wait_lost(asio::bind_executor(strand, [&](error_code) {
        there = strand.running_in_this_thread();
        done = true;
    }));
    std::filesystem::remove(d / "x");
    (void)lock.verify();
    BOOST_TEST(run_until(io, [&] { return done; }));
    BOOST_TEST(there);
}

BOOST_AUTO_TEST_CASE(a_context_may_end_while_a_loss_is_waited_for) {
    const directory d;
    lock_guard lock;
    const auto trace = std::make_shared<int>(0);
    {
        asio::io_context io;
        lock = acquire_on(io, d / "x", never_beats());
        lock.async_wait_lost([trace](error_code) { ++*trace; });
        BOOST_TEST(trace.use_count() == 2);
    }
    BOOST_TEST(trace.use_count() == 1);
    BOOST_TEST(*trace == 0);
    BOOST_TEST(lock.verify());
}

BOOST_AUTO_TEST_CASE(a_lost_lock_is_no_work_for_its_context) {
    const directory d;
    asio::io_context io;
    told t;
    auto lock = acquire_on(io, d / "x", t.listening(never_beats()));
    std::filesystem::remove(d / "x");
    (void)lock.verify();
    io.restart();
    (void)io.run_for(patience);
    BOOST_TEST(io.stopped());
}

BOOST_AUTO_TEST_CASE(a_copy_of_the_record_under_another_inode_is_no_loss) {
    const directory d;
    asio::io_context io;
    told t;
    auto lock = acquire_on(io, d / "x", t.listening(never_beats()));
    std::filesystem::copy_file(d / "x", d / "copy");
    std::filesystem::rename(d / "copy", d / "x");
    (void)io.run_for(20ms);
    BOOST_TEST(!lock.lost());
    BOOST_TEST(lock.verify());
}

BOOST_AUTO_TEST_SUITE_END()
