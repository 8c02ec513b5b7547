// Going through directories of locks: listing them, and removing what was abandoned beside them.
#include <boost/test/unit_test.hpp>

#include <sys/stat.h>
#include <sys/un.h>

#include "asking.hpp"
#include "crafted.hpp"
#include "support/child.hpp"

namespace {

using namespace support;
using boost::unit_test::precondition;
using fslock::errc;
using fslock::sweep;
using fslock::sweep_options;

const std::string dead_temp = ".tmp." + std::to_string(dead_pid) + ".1700000000000000000.7";
constexpr auto long_ago = std::chrono::hours(100);

/// What a sweep told.
struct account {
    std::vector<std::string> removed;
    std::vector<std::string> skipped;
    std::vector<fslock::error_code> errors;

    sweep_options listening(sweep_options o = {}) {
        o.on_removed = [this](const fslock::swept_file& f) { removed.push_back(f.path.filename()); };
        o.on_skipped = [this](const fslock::swept_file& f) {
            skipped.push_back(f.path.filename());
            errors.push_back(f.error);
        };
        return o;
    }
};

/// Everything that goes.
void leave_behind(const std::filesystem::path& where) {
    seed_record(dead_pid).write(where / ".a.reclaim", long_ago);
    peer_record(dead_pid).write(where / (".b" + dead_temp), long_ago);
    write_file(where / (".c" + dead_temp), "");
    age_file(where / (".c" + dead_temp), long_ago);
}

using names = std::vector<std::string>;

}  // namespace

BOOST_AUTO_TEST_SUITE(sweeping)

BOOST_AUTO_TEST_CASE(what_the_dead_left_goes_and_locks_stay_whoever_has_them) {  // B15
    const directory d;
    const auto held = fslock::acquire(d / "held");
    seed_record(dead_pid).write(d / "dead", long_ago);
    foreign_record().write(d / "foreign", long_ago);
    write_file(d / "empty", "");
    age_file(d / "empty", long_ago);
    write_file(d / "letter", "a letter");
    leave_behind(d.path());
    account a;
    BOOST_TEST(sweep(d.path(), a.listening()) == 3U);
    const names gone = {".a.reclaim", ".b" + dead_temp, ".c" + dead_temp};
    const names left = {"dead", "empty", "foreign", "held", "letter"};
    BOOST_TEST(a.removed == gone, boost::test_tools::per_element());
    BOOST_TEST(a.skipped.empty());
    BOOST_TEST(d.names() == left, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(what_the_living_need_stays) {
    const directory d;
    child other(live_on);
    const auto its = ".tmp." + std::to_string(other.pid()) + ".1.1";
    peer_record(other.pid()).write(d / ".a.reclaim");
    peer_record(other.pid()).write(d / (".b" + its), long_ago);
    write_file(d / (".c" + its), "");
    age_file(d / (".c" + its), long_ago);
    write_file(d / (".d" + dead_temp), "");               // young
    foreign_record().write(d / (".e" + dead_temp));       // young
    const auto before = picture_of(d.path());
    account a;
    BOOST_TEST(sweep(d.path(), a.listening()) == 0U);
    BOOST_TEST(a.skipped.size() == 5U);
    BOOST_TEST(picture_of(d.path()) == before, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(the_temp_of_a_stopped_process_stays) {  // E16; the moment itself is in tests/core/sweep_test.cpp
    const directory d;
    child writer(live_on);
    writer.signal(SIGSTOP);
    const auto name = ".x.tmp." + std::to_string(writer.pid()) + ".1.1";
    peer_record(writer.pid()).write(d / name, long_ago);
    BOOST_TEST(sweep(d.path()) == 0U);
    writer.kill_and_reap();
    BOOST_TEST(sweep(d.path()) == 1U);
}

BOOST_AUTO_TEST_CASE(what_has_such_a_name_and_is_something_else_stays) {
    const directory d;
    write_file(d / ".letter.reclaim", "a letter");
    write_file(d / (".letter" + dead_temp), "a letter");
    std::filesystem::create_directory(d / ".directory.reclaim");
    std::filesystem::create_symlink("nowhere", d / ".link.reclaim");
    BOOST_TEST_REQUIRE(::mkfifo((d / ".fifo.reclaim").c_str(), 0600) == 0);
    seed_record(dead_pid).write(d / ".nfs0000000000000001.reclaim", long_ago);
    seed_record(dead_pid).write(d / ".x.RECLAIM", long_ago);
    for (const auto& name : {std::string(".letter.reclaim"), ".letter" + dead_temp}) age_file(d / name, long_ago);
    const auto before = picture_of(d.path());
    account a;
    BOOST_TEST(sweep(d.path(), a.listening()) == 0U);
    BOOST_TEST(a.skipped.size() == 2U);
    for (const auto& e : a.errors) BOOST_TEST(e == errc::not_a_lock_file);
    BOOST_TEST(picture_of(d.path()) == before, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(one_bad_file_or_directory_keeps_nothing_else_from_being_swept) {  // C04
    const directory d;
    for (const auto* sub : {"a", "b", "c"}) std::filesystem::create_directory(d / sub);
    write_file(d / "a/.bad.reclaim", std::string(100'000, '['));
    age_file(d / "a/.bad.reclaim", long_ago);
    std::filesystem::create_symlink("b", d / "d");
    leave_behind(d / "a");
    leave_behind(d / "c");
    account a;
    BOOST_TEST(sweep(d.path(), a.listening()) == 6U);
    BOOST_TEST(a.skipped == names{".bad.reclaim"}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_directory_that_may_not_be_read_is_told_and_passed_by, *precondition(ordinary_user)) {
    const directory d;
    std::filesystem::create_directory(d / "a");
    std::filesystem::create_directory(d / "b");
    leave_behind(d / "b");
    for (const auto& at : {d.path(), d / "b"}) (void)::chmod(at.c_str(), 0777);
    (void)::chmod((d / "a").c_str(), 0);
    const auto words = without_privileges([&] {
        account a;
        const auto removed = sweep(d.path(), a.listening());
        return std::to_string(removed) + ' ' + (a.skipped == names{"a"} ? a.errors[0].message() : "something else");
    });
    (void)::chmod((d / "a").c_str(), 0700);
    // Records of mode 0600 that another user wrote cannot be read by `nobody`, and are skipped as well.
    BOOST_TEST((words == "3 Permission denied" || words == "0 something else"), words);
}

BOOST_AUTO_TEST_CASE(a_sweep_goes_no_deeper_than_it_is_told) {
    const directory d;
    auto deepest = d.path();
    for (int i = 0; i < 4; ++i) {
        leave_behind(deepest);
        deepest /= "sub";
        std::filesystem::create_directory(deepest);
    }
    sweep_options o;
    o.dry_run = true;
    BOOST_TEST(sweep(d.path(), o) == 9U);
    o.depth = 0;
    BOOST_TEST(sweep(d.path(), o) == 3U);
    o.depth = 100;
    BOOST_TEST(sweep(d.path(), o) == 12U);
    o.most_entries = 4;
    account a;
    BOOST_TEST(sweep(d.path(), a.listening(o)) == 3U);
    BOOST_TEST_REQUIRE(!a.errors.empty());
    BOOST_TEST(a.errors[0] == errc::limit_reached);
}

BOOST_AUTO_TEST_CASE(a_dry_run_tells_and_leaves_everything_as_it_is) {
    const directory d;
    leave_behind(d.path());
    const auto before = picture_of(d.path());
    sweep_options o;
    o.dry_run = true;
    account a;
    BOOST_TEST(sweep(d.path(), a.listening(o)) == 3U);
    BOOST_TEST(a.removed.size() == 3U);
    BOOST_TEST(picture_of(d.path()) == before, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(domains_are_all_that_is_looked_at) {
    const directory d;
    for (const auto* sub : {"index/key", "other", "real"}) std::filesystem::create_directories(d / sub);
    std::filesystem::create_directory_symlink("real", d / "link");
    for (const auto* sub : {"", "index", "index/key", "other", "real"}) leave_behind(d / sub);
    sweep_options o;
    o.dry_run = true;
    o.domains = {"index", "never/used", "link"};
    account a;
    BOOST_TEST(sweep(d.path(), a.listening(o)) == 6U);
    BOOST_TEST(a.skipped == names{"link"}, boost::test_tools::per_element());
    o.domains = {"."};
    o.depth = 0;
    BOOST_TEST(sweep(d.path(), o) == 3U);
}

BOOST_AUTO_TEST_CASE(a_process_that_is_told_to_sweeps_once_in_a_while) {
    const directory d;
    sweep_options o;
    o.at_most_every = std::chrono::hours(24);
    leave_behind(d.path());
    BOOST_TEST(sweep(d.path(), o) == 3U);
    leave_behind(d.path());
    BOOST_TEST(sweep(d.path() / "", o) == 0U);
    BOOST_TEST(d.names().size() == 3U);
    BOOST_TEST(sweep(d.path()) == 3U);
    const directory other;
    leave_behind(other.path());
    BOOST_TEST(sweep(other.path(), o) == 3U);
}

BOOST_AUTO_TEST_CASE(a_root_that_cannot_be_swept_is_an_error) {
    const directory d;
    write_file(d / "file", "");
    const auto error = [](const std::filesystem::path& p, const sweep_options& o = {}) {
        fslock::error_code ec;
        BOOST_TEST(sweep(p, o, ec) == 0U);
        return ec;
    };
    BOOST_TEST(error(d / "missing") == os_error(ENOENT));
    fslock::error_code without_options;
    BOOST_TEST(sweep(d / "missing", without_options) == 0U);
    BOOST_TEST(without_options == os_error(ENOENT));
    BOOST_TEST(sweep(d.path(), without_options) == 0U);
    BOOST_TEST(!without_options);
    BOOST_TEST(error(d / "file") == os_error(ENOTDIR));
    BOOST_TEST(error(std::string("a\0b", 3)) == os_error(EINVAL));
    BOOST_TEST(static_cast<bool>(error("")));
    sweep_options o;
    o.domains = {"../elsewhere"};
    BOOST_TEST(error(d.path(), o) == errc::bad_options);
    o.domains = {"/etc"};
    BOOST_TEST(error(d.path(), o) == errc::bad_options);
    sweep_options hasty;
    hasty.temp_grace = std::chrono::seconds(1);
    BOOST_TEST(error(d.path(), hasty) == errc::bad_options);
}

BOOST_AUTO_TEST_CASE(another_filesystem_is_another_matter, *precondition(mounts)) {
    const directory d;
    std::filesystem::create_directory(d / "mount");
    const auto words = on_tmpfs(d / "mount", "size=1m", [&] {
        leave_behind(d / "mount");
        sweep_options o;
        o.dry_run = true;
        account a;
        auto counts = std::to_string(sweep(d.path(), a.listening(o)));
        if (a.errors.size() == 1 && a.errors[0] == std::errc::cross_device_link) counts += " and told";
        o.other_filesystems = true;
        return counts + ", " + std::to_string(sweep(d.path(), o));
    });
    BOOST_TEST(words == "0 and told, 3");
}

BOOST_AUTO_TEST_CASE(a_list_has_every_lock_and_one_bad_file_spoils_nothing) {  // C04
    const directory d;
    std::vector<fslock::lock_guard> held;
    for (int i = 0; i < 10; ++i) held.push_back(fslock::acquire(d / ("lock" + std::to_string(i))));
    seed_record(dead_pid).write(d / "dead", long_ago);
    write_file(d / "cut", "{\"pid\":12,");
    write_file(d / "letter", "a letter");
    write_file(d / "large", std::string(100'000, '{'));
    write_file(d / "deep", std::string(4000, '['));
    std::filesystem::create_symlink("lock0", d / "link");
    std::filesystem::create_directory(d / "sub");
    BOOST_TEST_REQUIRE(::mkfifo((d / "fifo").c_str(), 0600) == 0);
    leave_behind(d.path());
    const auto all = fslock::list_locks(d.path());
    names found;
    for (const auto& info : all) found.push_back(info.path.filename());
    const names expected = {"cut", "dead", "lock0", "lock1", "lock2", "lock3",
                            "lock4", "lock5", "lock6", "lock7", "lock8", "lock9"};
    BOOST_TEST_REQUIRE(found == expected, boost::test_tools::per_element());
    BOOST_TEST(all[0].malformed);
    BOOST_TEST((all[1].verdict == fslock::liveness::dead));
    for (std::size_t i = 2; i < all.size(); ++i) {
        BOOST_TEST((all[i].verdict == fslock::liveness::alive));
        BOOST_TEST(all[i].owner.writer_epoch == held[i - 2].writer_epoch());
        BOOST_TEST(all[i].known_process);
    }
    fslock::error_code ec;
    BOOST_TEST(fslock::list_locks(d / "missing", ec).empty());
    BOOST_TEST(ec == os_error(ENOENT));
}

BOOST_AUTO_TEST_CASE(a_record_that_may_not_be_read_is_in_the_list_with_the_reason, *precondition(two_users)) {
    const directory d;
    (void)::chmod(d.path().c_str(), 0755);
    const auto lock = fslock::acquire(d / "x");
    const auto words = without_privileges([&] {
        std::filesystem::current_path(d.path().parent_path());
        const auto all = fslock::list_locks(d.path().filename());
        return all.size() == 1 ? all[0].path.string() + ' ' + all[0].error.message() : "";
    });
    BOOST_TEST(words == (d / "x").string() + " Permission denied");
}

BOOST_AUTO_TEST_CASE(a_beat_between_two_inspections_is_a_sign_of_life) {
    const directory d;
    foreign_record().write(d / "x", std::chrono::hours(3));
    BOOST_TEST((fslock::inspect(d / "x")->verdict == fslock::liveness::dead));
    age_file(d / "x", std::chrono::hours(2));
    BOOST_TEST((fslock::inspect(d / "x")->verdict == fslock::liveness::unknown));
}

BOOST_AUTO_TEST_SUITE_END()
