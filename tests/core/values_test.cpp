// Options and their bounds; the words for errors, proofs and events.
#include <boost/test/unit_test.hpp>
#include <cerrno>
#include <chrono>
#include <functional>
#include <set>
#include <string>

#include "fslock/error.hpp"
#include "fslock/event.hpp"
#include "fslock/options.hpp"

namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;
using fslock::errc;
using fslock::event_kind;
using fslock::options;
using fslock::proof;
using std::chrono::milliseconds;

constexpr milliseconds ten_years = std::chrono::hours(24 * 365 * 10);

struct bounds {
    const char* name;
    milliseconds options::*field;
    milliseconds low;
    milliseconds high;
};

constexpr bounds durations[] = {
    {"heartbeat_interval", &options::heartbeat_interval, 1ms, 1h},
    {"stale_after", &options::stale_after, 1ms, ten_years},
    {"foreign_stale_after", &options::foreign_stale_after, 15s, ten_years},  // not below stale_after
    {"foreign_confirm", &options::foreign_confirm, 0ms, ten_years},
    {"malformed_grace", &options::malformed_grace, 0ms, ten_years},
    {"poll_interval", &options::poll_interval, 1ms, 1min},
    {"warn_after", &options::warn_after, 0ms, ten_years},
};

std::error_code checked(const std::function<void(options&)>& change) {
    options o;
    change(o);
    return check(o);
}

BOOST_AUTO_TEST_SUITE(options_and_their_bounds)

BOOST_AUTO_TEST_CASE(the_defaults_are_the_documented_ones) {
    const options o;
    BOOST_TEST(!check(o));
    BOOST_TEST((o.heartbeat_interval == 5s));
    BOOST_TEST((o.stale_after == 15s));
    BOOST_TEST((o.foreign_stale_after == 75s));
    BOOST_TEST((o.foreign_confirm == 10s));
    BOOST_TEST((o.malformed_grace == 5s));
    BOOST_TEST((o.poll_interval == 100ms));
    BOOST_TEST((o.warn_after == 10min));
    BOOST_TEST((o.durability == fslock::durability::relaxed));
    BOOST_TEST((o.foreign_content == fslock::foreign_content::refuse));
    BOOST_TEST((o.witness == fslock::witness::automatic));
    BOOST_TEST(o.label.empty());
    BOOST_TEST(o.mode == 0600U);
    BOOST_TEST(!o.on_event);
}

BOOST_AUTO_TEST_CASE(every_duration_has_its_range) {
    for (const auto& d : durations) {
        BOOST_TEST_CONTEXT(d.name) {
            const auto with = [&](milliseconds value) {
                return checked([&](options& o) {
                    o.*d.field = value;
                    if (d.field == &options::stale_after) o.foreign_stale_after = ten_years;
                });
            };
            BOOST_TEST(!with(d.low));
            BOOST_TEST(!with(d.high));
            BOOST_TEST(with(d.low - 1ms) == errc::bad_options);
            BOOST_TEST(with(d.high + 1ms) == errc::bad_options);
            BOOST_TEST(with(-1ms) == errc::bad_options);
            BOOST_TEST(with(milliseconds::min()) == errc::bad_options);
            BOOST_TEST(with(milliseconds::max()) == errc::bad_options);
        }
    }
}

BOOST_AUTO_TEST_CASE(a_foreign_owner_is_not_given_less_time_than_a_local_one) {
    const auto with = [](milliseconds local, milliseconds foreign) {
        return checked([&](options& o) { o.stale_after = local, o.foreign_stale_after = foreign; });
    };
    BOOST_TEST(!with(1ms, 1ms));
    BOOST_TEST(!with(2min, 2min));
    BOOST_TEST(!with(ten_years, ten_years));
    BOOST_TEST(with(2min, 2min - 1ms) == errc::bad_options);
    BOOST_TEST(with(76s, 75s) == errc::bad_options);
}

BOOST_AUTO_TEST_CASE(the_mode_is_one_that_its_owner_can_read_and_write) {
    for (const unsigned good : {0600U, 0644U, 0660U, 0666U, 0700U, 0777U})
        BOOST_TEST_CONTEXT(good) BOOST_TEST(!checked([&](options& o) { o.mode = good; }));
    for (const unsigned bad : {0U, 0400U, 0200U, 0066U, 0177U, 01600U, 02600U, 04600U, 0100600U, ~0U})
        BOOST_TEST_CONTEXT(bad) BOOST_TEST(checked([&](options& o) { o.mode = bad; }) == errc::bad_options);
}

BOOST_AUTO_TEST_CASE(the_label_is_short_and_utf8) {
    for (const auto& good : {""s, "x"s, std::string(256, 'x'), "gr\xc3\xbc\xc3\x9f"s, "a\nb\0c"s})
        BOOST_TEST(!checked([&](options& o) { o.label = good; }));
    for (const auto& bad : {std::string(257, 'x'), "\xff"s, "a\xc3"s, "\xc0\x80"s, "\xed\xa0\x80"s})
        BOOST_TEST(checked([&](options& o) { o.label = bad; }) == errc::bad_options);
}

BOOST_AUTO_TEST_SUITE_END()
BOOST_AUTO_TEST_SUITE(words_for_values)

BOOST_AUTO_TEST_CASE(an_error_says_what_to_do) {
    struct {
        errc code;
        const char* advice;
    } const rows[] = {
        {errc::lost, "acquire again"},
        {errc::not_owner, "inspect it"},
        {errc::not_a_lock_file, "choose another path"},
        {errc::bad_options, "fslock/options.hpp"},
        {errc::reserved_name, "choose another name"},
    };
    std::set<std::string> messages;
    for (const auto& r : rows) {
        const std::error_code e = r.code;
        BOOST_TEST_CONTEXT(e.message()) {
            BOOST_TEST(static_cast<bool>(e));
            BOOST_TEST(e.message().find(r.advice) != std::string::npos);
            BOOST_TEST(e.category().name() == "fslock"s);
        }
        messages.insert(e.message());
    }
    BOOST_TEST(messages.size() == std::size(rows));
    for (const int code : {0, 6, -1}) {
        const auto unknown = fslock::error_category().message(code);
        BOOST_TEST(!unknown.empty());
        BOOST_TEST(messages.count(unknown) == 0U);
    }
    BOOST_TEST((fslock::make_error_code(errc::lost) != std::error_code(1, std::system_category())));
}

BOOST_AUTO_TEST_CASE(every_proof_and_kind_has_its_own_words) {
    std::set<std::string> proofs;
    for (int p = 0; p <= static_cast<int>(proof::malformed_unchanged); ++p)
        proofs.insert(to_string(static_cast<proof>(p)));
    BOOST_TEST(proofs.size() == 10U);
    BOOST_TEST(proofs.count("") == 0U);
    std::set<std::string> kinds;
    for (int k = 0; k <= static_cast<int>(event_kind::lost); ++k)
        kinds.insert(to_string(static_cast<event_kind>(k)));
    BOOST_TEST(kinds.size() == 9U);
    BOOST_TEST(kinds.count("unknown") == 0U);
}

fslock::event of_peer(event_kind kind) {
    fslock::event e;
    e.kind = kind;
    e.path = "/a/x";
    e.owner.pid = 7;
    e.owner.hostname = "beta";
    e.owner.label = "index";
    e.age = 1'500ms;
    return e;
}

BOOST_AUTO_TEST_CASE(an_event_about_an_owner_names_it) {
    auto waiting = of_peer(event_kind::waiting);
    BOOST_TEST(to_string(waiting) == "/a/x: waiting for pid 7 on beta, \"index\"");
    waiting.proof = proof::witness_held;
    BOOST_TEST(to_string(waiting) == "/a/x: waiting for pid 7 on beta, \"index\" (its kernel lock is held)");
    auto reclaimed = of_peer(event_kind::reclaimed);
    reclaimed.proof = proof::process_gone;
    BOOST_TEST(to_string(reclaimed) ==
               "/a/x: reclaimed from pid 7 on beta, \"index\" (its process is gone, silent for 1500 ms)");
    reclaimed.age = 0ms;  // the kernel said so at once
    reclaimed.proof = proof::witness_free;
    BOOST_TEST(to_string(reclaimed) == "/a/x: reclaimed from pid 7 on beta, \"index\" (its kernel lock is gone)");
    auto blocked = of_peer(event_kind::reclaim_blocked);
    blocked.error = std::error_code(EACCES, std::system_category());
    blocked.count = 12;
    BOOST_TEST(to_string(blocked) ==
               "/a/x: reclaim blocked by pid 7 on beta, \"index\": " + blocked.error.message() + " (12x)");
    BOOST_TEST(to_string(of_peer(event_kind::stale_but_alive)) ==
               "/a/x: stale but alive: pid 7 on beta, \"index\", for 1500 ms");
    BOOST_TEST(to_string(of_peer(event_kind::held_long)) ==
               "/a/x: held long: pid 7 on beta, \"index\", for 1500 ms");
}

BOOST_AUTO_TEST_CASE(an_owner_is_named_as_far_as_it_is_known) {  // I10
    auto e = of_peer(event_kind::waiting);
    e.owner.label.clear();
    BOOST_TEST(to_string(e) == "/a/x: waiting for pid 7 on beta");
    e.owner.hostname.clear();
    BOOST_TEST(to_string(e) == "/a/x: waiting for pid 7");
    e.owner.this_process = true;
    e.owner.hostname = "alpha";
    BOOST_TEST(to_string(e) == "/a/x: waiting for this process");
    e.owner = {};
    BOOST_TEST(to_string(e) == "/a/x: waiting for an unknown owner");
}

BOOST_AUTO_TEST_CASE(an_event_of_the_holder_says_what_failed) {
    struct {
        event_kind kind;
        const char* words;
    } const rows[] = {
        {event_kind::beat_failed, "heartbeat failed"},
        {event_kind::beat_recovered, "heartbeat recovered"},
        {event_kind::at_risk, "at risk"},
        {event_kind::lost, "lost"},
    };
    const std::error_code full(ENOSPC, std::system_category());
    for (const auto& r : rows) {
        auto e = of_peer(r.kind);
        BOOST_TEST(to_string(e) == "/a/x: "s + r.words);
        e.error = full;
        BOOST_TEST(to_string(e) == "/a/x: "s + r.words + ": " + full.message());
        e.count = 3;
        BOOST_TEST(to_string(e) == "/a/x: "s + r.words + ": " + full.message() + " (3x)");
    }
}

BOOST_AUTO_TEST_CASE(a_loss_is_said_once) {
    auto lost = of_peer(event_kind::lost);
    lost.error = make_error_code(fslock::errc::lost);
    lost.loss = fslock::loss::removed;
    BOOST_TEST(to_string(lost) == "/a/x: lost: its record was removed");
    lost.loss = fslock::loss::none;
    BOOST_TEST(to_string(lost) == "/a/x: lost: " + lost.error.message());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
