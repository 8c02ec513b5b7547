// A filesystem that lies, as NFS and FUSE do at times: links that were not made, handles that are stale, names that
// are gone for a moment. The calls of the C library are replaced in this program; the files are real.
#include <boost/test/unit_test.hpp>

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <string_view>

#include "engine/asking.hpp"
#include "engine/crafted.hpp"
#include "support/child.hpp"

namespace {

/// What goes wrong from now on: so many calls of a kind, or all with a negative number.
struct faults {
    std::atomic<int> links_not_made{0};
    std::atomic<int> opens_that_fail{0};
    std::atomic<int> error_of_opens{0};
    std::atomic<int> every{1};  ///< only each nth of the opens
    std::atomic<int> happened{0};
    std::atomic<bool> taken_is_denied{false};  ///< EPERM instead of EEXIST, as over sshfs
    std::atomic<bool> no_links{false};         ///< nor exclusive renames
} wrong;

constexpr std::string_view fault_name = "/liar";  // only locks of this name are lied about

bool concerns(const char* path) {
    const std::string_view p(path);
    return p.size() >= fault_name.size() && p.substr(p.size() - fault_name.size()) == fault_name;
}

bool happens(std::atomic<int>& fault) {
    if (fault == 0) return false;
    if (fault > 0) --fault;
    ++wrong.happened;
    return true;
}

int refused(int error) {
    ++wrong.happened;
    errno = error;
    return -1;
}

/// What a call that gives a file its name says, `n` being what it really came to.
int as_the_fault_says(int n) {
    if (n < 0 && errno == EEXIST && wrong.taken_is_denied) {
        ++wrong.happened;
        errno = EPERM;
    }
    return n;
}

template <class F>
F* next(const char* name) {
    return reinterpret_cast<F*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

// Compiled with 64 bits for offsets, as the library is, these are statfs64 and open64.
static_assert(sizeof(off_t) == 8);

extern "C" {

/// Everything is NFS here.
int statfs(const char* path, struct statfs* into) noexcept {
    static auto* const real = next<int(const char*, struct statfs*)>("statfs64");
    const int n = real(path, into);
    into->f_type = 0x6969;
    return n;
}

int linkat(int from_directory, const char* from, int to_directory, const char* to, int flags) noexcept {
    static auto* const real = next<int(int, const char*, int, const char*, int)>("linkat");
    if (concerns(to) && happens(wrong.links_not_made)) return 0;
    if (concerns(to) && wrong.no_links) return refused(EPERM);
    const int n = real(from_directory, from, to_directory, to, flags);
    return concerns(to) ? as_the_fault_says(n) : n;
}
int link(const char* from, const char* to) noexcept {
    static auto* const real = next<int(const char*, const char*)>("link");
    if (concerns(to) && happens(wrong.links_not_made)) return 0;
    if (concerns(to) && wrong.no_links) return refused(EPERM);
    const int n = real(from, to);
    return concerns(to) ? as_the_fault_says(n) : n;
}

int open(const char* path, int flags, ...) {
    static auto* const real = next<int(const char*, int, ...)>("open64");
    static std::atomic<int> looks{0};
    const bool look = concerns(path) && (flags & O_CREAT) == 0;
    if (look && ++looks % wrong.every == 0 && happens(wrong.opens_that_fail)) {
        errno = wrong.error_of_opens;
        return -1;
    }
    if ((flags & O_CREAT) == 0 && (flags & O_TMPFILE) != O_TMPFILE) return real(path, flags);
    va_list rest;
    va_start(rest, flags);
    const auto mode = va_arg(rest, mode_t);
    va_end(rest);
    const int fd = real(path, flags, mode);
    return concerns(path) ? as_the_fault_says(fd) : fd;
}

/// Exclusive renames come this way.
long syscall(long number, ...) noexcept {
    static auto* const real = next<long(long, ...)>("syscall");
    va_list rest;
    va_start(rest, number);
    std::array<long, 6> words{};
    for (auto& w : words) w = va_arg(rest, long);
    va_end(rest);
    if (number == SYS_renameat2 && concerns(reinterpret_cast<const char*>(words[3])) && wrong.no_links)
        return refused(EINVAL);
    return real(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}

}  // extern "C"

namespace {

using namespace support;
using fslock::lock_guard;
using std::filesystem::path;

struct honest_again {
    ~honest_again() {
        wrong.links_not_made = wrong.opens_that_fail = wrong.happened = 0;
        wrong.every = 1;
        wrong.taken_is_denied = wrong.no_links = false;
    }
};

/// Another process, with the same faults, since those of one process wait in memory.
std::string what_a_contender_gets(const path& p) {
    return in_child([&] {
        wrong.happened = 0;
        fslock::error_code ec;
        auto lock = fslock::try_acquire(p, 700ms, minutes(), ec);
        const bool got = static_cast<bool>(lock);
        lock.release();  // a child of ours does not exit as a program does
        if (wrong.happened == 0) return std::string("no fault");
        return ec ? ec.message() : got ? std::string("the lock") : std::string("nothing");
    });
}

lock_guard held_to_the_end;

}  // namespace

BOOST_AUTO_TEST_SUITE(faults_of_filesystems)

BOOST_AUTO_TEST_CASE(a_link_that_was_reported_and_not_made_is_no_lock) {  // G04
    const honest_again after;
    const directory d;
    wrong.links_not_made = -1;
    BOOST_TEST(!fslock::try_acquire(d / "liar", 1s, minutes()));
    BOOST_TEST(wrong.happened > 0);
    BOOST_TEST(d.empty());
    wrong.links_not_made = 2;
    auto lock = fslock::try_acquire(d / "liar", patience, minutes());
    BOOST_TEST_REQUIRE(static_cast<bool>(lock));
    BOOST_TEST(lock.verify());
    lock.release();
    BOOST_TEST(d.empty());
}

BOOST_AUTO_TEST_CASE(a_handle_that_is_stale_is_looked_at_again) {  // G07
    const honest_again after;
    for (const int error : {ESTALE, EIO}) {
        const directory d;
        auto owner = fslock::acquire(d / "liar", minutes());
        wrong.error_of_opens = error;
        wrong.every = 2;
        wrong.opens_that_fail = -1;
        BOOST_TEST(what_a_contender_gets(d / "liar") == "nothing");
        BOOST_TEST(eventually([] { return wrong.happened > 5; }));
        wrong.opens_that_fail = 0;
        BOOST_TEST(owner.verify());
        BOOST_TEST(!owner.lost());
        owner.release();
        BOOST_TEST(d.empty());
    }
}

BOOST_AUTO_TEST_CASE(a_name_that_is_gone_for_a_moment_is_neither_free_nor_lost) {  // G08
    const honest_again after;
    const directory d;
    const told t;
    auto owner = fslock::acquire(d / "liar", t.listening(minutes()));
    wrong.error_of_opens = ENOENT;
    wrong.every = 3;
    wrong.opens_that_fail = -1;
    BOOST_TEST(what_a_contender_gets(d / "liar") == "nothing");
    BOOST_TEST(eventually([&] { return wrong.happened > 5; }));
    wrong.opens_that_fail = 0;
    BOOST_TEST(owner.verify());
    BOOST_TEST(!t.has(fslock::event_kind::lost));
    owner.release();
    BOOST_TEST(d.empty());
}

BOOST_AUTO_TEST_CASE(a_held_lock_is_contention_whatever_the_filesystem_calls_it) {
    const honest_again after;
    for (const bool linkless : {false, true}) {
        const directory d;
        wrong.no_links = linkless;
        auto owner = fslock::acquire(d / "liar", minutes());
        wrong.taken_is_denied = true;
        BOOST_TEST(what_a_contender_gets(d / "liar") == "nothing");
        owner.release();
        BOOST_TEST(what_a_contender_gets(d / "liar") != "nothing");
        wrong.taken_is_denied = false;
        BOOST_TEST(d.empty());
    }
}

// Their removal is left to a thread, since it may hang. Nobody else can take over at once what a host left behind.
BOOST_AUTO_TEST_CASE(a_program_that_ends_gives_back_its_locks_on_a_shared_filesystem) {
    const auto& program = boost::unit_test::framework::master_test_suite();
    if (program.argc > 1) {  // this is the program
        const path d = program.argv[1];
        held_to_the_end = fslock::acquire(d / "held to the end", minutes());
        const auto released = fslock::acquire(d / "released just before", minutes());
        return;
    }
    const directory d;
    const std::string part = "--run_test=" + boost::unit_test::framework::current_test_case().full_name();
    BOOST_TEST(run_program({program.argv[0], part, "--log_level=error", "--report_level=no", "--", d.path()}) == 0);
    BOOST_TEST(d.names() == std::vector<std::string>(), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
