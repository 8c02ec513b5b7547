// What a sweep takes for abandoned, and what may happen while it does.
#include <boost/test/unit_test.hpp>

#include "core/sweep.hpp"
#include "fslock/error.hpp"
#include "support/led_process.hpp"

namespace {

using namespace support;
using namespace std::chrono_literals;
using core::sweeping;

constexpr std::int64_t one_hour = 3600 * one_second;
const std::string temp_path = "/d/.x.tmp.50.1700000000000000000.7";

core::sweep_rules usual() {
    core::sweep_rules r;
    r.temp_grace = 6h;
    return r;
}

/// Somebody who sweeps, and leads to a step if asked.
struct sweeper {
    explicit sweeper(small_world& k, int pid = 101) : led(k, {}, k.kind, pid) {}

    core::task<int> token() {
        out = co_await core::sweep_token(led.contender, usual());
        co_return 0;
    }
    core::task<int> temp(std::string path, int maker, core::sweep_rules rules) {
        out = co_await core::sweep_temp(led.contender, path, maker, rules);
        co_return 0;
    }
    void begin(core::task<int> what) {
        run = std::move(what);
        run.resume();
    }
    sweeping end() {
        led.go_on();
        return out.state;
    }
    sweeping sweep_token() {
        begin(token());
        return end();
    }
    sweeping sweep_temp(const std::string& path, int maker, core::sweep_rules rules = usual()) {
        begin(temp(path, maker, rules));
        return end();
    }

    led_process led;
    core::sweep_outcome out;
    core::task<int> run;
};

core::record foreign_record() {
    auto r = record_of(dead);
    r.hostname = "elsewhere";
    r.boot_id = {};
    return r;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(sweeps)

BOOST_AUTO_TEST_CASE(a_token_goes_when_its_holder_is_dead_and_its_lock_stays) {
    small_world k;
    const auto owner = core::format(guarded_record_of(dead));
    k.put(lock_path, owner, one_hour);
    k.put(token_path, core::format(guarded_record_of(dead)), one_hour);
    sweeper s(k);
    BOOST_TEST((s.sweep_token() == sweeping::removed));
    BOOST_TEST(k.names.size() == 1U);
    BOOST_TEST(text_at(k, lock_path) == owner);
}

BOOST_AUTO_TEST_CASE(a_token_stays_while_its_holder_lives_or_may_live) {
    const std::string contents[] = {core::format(record_of(living)), core::format(foreign_record()), "", "a letter"};
    for (const auto& content : contents) {
        small_world k;
        k.put(token_path, content, 30 * one_second);
        sweeper s(k);
        BOOST_TEST((s.sweep_token() == sweeping::kept));
        BOOST_TEST(text_at(k, token_path) == content);
        BOOST_TEST(k.names.size() == 1U);
    }
}

BOOST_AUTO_TEST_CASE(nothing_is_gone_and_no_error) {
    small_world k;
    sweeper s(k);
    BOOST_TEST((s.sweep_token() == sweeping::gone));
    BOOST_TEST((s.sweep_temp(temp_path, dead) == sweeping::gone));
    BOOST_TEST(!s.out.error);
}

BOOST_AUTO_TEST_CASE(a_token_that_is_another_by_then_is_put_back) {
    small_world k;
    k.put(token_path, core::format(guarded_record_of(dead)), one_hour);
    sweeper s(k);
    s.begin(s.token());
    BOOST_TEST_REQUIRE(s.led.comes_to("rename " + token_path));
    const auto others = core::format(record_of(living));
    replace(k, token_path, others);
    BOOST_TEST((s.end() == sweeping::gone));
    BOOST_TEST(text_at(k, token_path) == others);
    BOOST_TEST(k.names.size() == 1U);
}

BOOST_AUTO_TEST_CASE(a_sweeper_does_not_come_between_a_reclaimer_and_its_dead_token) {
    small_world k;
    k.put(lock_path, core::format(guarded_record_of(dead)), one_hour);
    k.put(token_path, core::format(guarded_record_of(dead)), one_hour);
    led_process reclaimer(k);
    reclaimer.contend();
    BOOST_TEST_REQUIRE(reclaimer.comes_to("rename " + token_path));
    sweeper s(k);
    BOOST_TEST((s.sweep_token() == sweeping::kept));
    reclaimer.go_on();
    BOOST_TEST(reclaimer.owns());
}

BOOST_AUTO_TEST_CASE(a_temp_goes_at_once_when_the_kernel_proves_its_writer_dead) {
    auto by_process = guarded_record_of(dead);
    by_process.guard = os::witness_kind::none;
    for (const auto& r : {guarded_record_of(dead), by_process}) {
        small_world k;
        k.put(temp_path, core::format(r), one_second);
        sweeper s(k);
        BOOST_TEST((s.sweep_temp(temp_path, dead) == sweeping::removed));
        BOOST_TEST(k.names.empty());
    }
}

BOOST_AUTO_TEST_CASE(where_only_silence_speaks_a_temp_has_to_be_older_than_the_grace) {
    // Of another host, of a peer that says nothing of its PID namespace, and cut off before anything was said.
    const std::string contents[] = {core::format(foreign_record()), core::format(record_of(dead)), "", "{\"pid\":5"};
    for (const auto& content : contents) {
        small_world k;
        k.put(temp_path, content, 5 * one_hour);
        sweeper s(k);
        BOOST_TEST((s.sweep_temp(temp_path, dead) == sweeping::kept));
        k.now_ns += 2 * one_hour;
        BOOST_TEST((s.sweep_temp(temp_path, dead) == sweeping::removed));
        BOOST_TEST(k.names.empty());
    }
}

BOOST_AUTO_TEST_CASE(a_temp_stays_while_there_is_a_process_of_its_makers_pid) {
    for (const auto& content : {core::format(guarded_record_of(dead)), std::string()}) {
        small_world k;
        k.put(temp_path, content, 100 * one_hour);
        sweeper s(k);
        BOOST_TEST((s.sweep_temp(temp_path, living) == sweeping::kept));
        BOOST_TEST(k.names.size() == 1U);
    }
}

BOOST_AUTO_TEST_CASE(a_pid_that_went_to_another_process_keeps_no_temp) {
    small_world k;
    auto r = guarded_record_of(living);
    r.guard = os::witness_kind::none;
    r.process_start_time = 1;
    k.put(temp_path, core::format(r), one_second);
    sweeper s(k);
    BOOST_TEST((s.sweep_temp(temp_path, living) == sweeping::removed));
}

BOOST_AUTO_TEST_CASE(somebodys_file_is_no_temp_whatever_its_name) {
    small_world k;
    k.put(temp_path, "a letter", 100 * one_hour);
    sweeper s(k);
    BOOST_TEST((s.sweep_temp(temp_path, dead) == sweeping::kept));
    BOOST_TEST((s.out.error == fslock::errc::not_a_lock_file));
    BOOST_TEST(text_at(k, temp_path) == "a letter");
}

BOOST_AUTO_TEST_CASE(a_dry_run_changes_nothing) {
    small_world k;
    k.put(temp_path, core::format(guarded_record_of(dead)), one_hour);
    sweeper s(k);
    auto rules = usual();
    rules.dry_run = true;
    BOOST_TEST((s.sweep_temp(temp_path, dead, rules) == sweeping::removed));
    BOOST_TEST(k.names.size() == 1U);
}

/// Wants the lock, has written its temp, and stands still before it links it.
struct stopped_writer {
    stopped_writer() {
        k.unnamed_files = false;
        k.records_change = true;
        writer.contend();
        BOOST_REQUIRE(writer.comes_to("link /d/x"));
        k.now_ns += 100 * one_hour;
        BOOST_REQUIRE(k.names.size() == 1U);
    }
    [[nodiscard]] std::string temp() const { return k.names.begin()->first; }
    small_world k;
    led_process writer{k};
};

BOOST_AUTO_TEST_CASE(the_temp_of_a_writer_that_stands_still_stays) {
    stopped_writer w;
    sweeper s(w.k);
    BOOST_TEST((s.sweep_temp(w.temp(), w.writer.process.pid()) == sweeping::kept));
    // Nor if the pid in its name says nothing here: its witness does.
    BOOST_TEST((s.sweep_temp(w.temp(), dead) == sweeping::kept));
    w.writer.go_on();
    BOOST_TEST(w.writer.owns());
}

BOOST_AUTO_TEST_CASE(a_writer_whose_temp_is_gone_prepares_another) {
    stopped_writer w;
    w.k.remove(w.temp());
    w.writer.go_on();
    BOOST_TEST(w.writer.owns());
    BOOST_TEST((w.writer.verify() == core::standing::ours));
    BOOST_TEST(w.k.names.size() == 1U);
}

BOOST_AUTO_TEST_SUITE_END()
