#include "asking.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <asio/awaitable.hpp>
#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>
#include <sstream>

namespace support {
namespace {

namespace asio = fslock::asio;
using namespace std::chrono_literals;
using fslock::lock_guard;
using fslock::options;
using std::filesystem::path;

constexpr auto at_once = 2s;   // it takes less than a millisecond, on a machine that has nothing else to do
constexpr auto too_late = 5s;  // for what has to come at once
constexpr uid_t nobody = 65534;

answer ask_blocking(const path& p, const options& o, std::chrono::seconds limit) {
    answer a;
    a.lock = fslock::try_acquire(p, limit, o, a.error);
    a.completed = a.error || a.lock;
    return a;
}

answer ask_once(const path& p, const options& o, std::chrono::seconds) {
    answer a;
    try {
        a.lock = fslock::try_acquire_once(p, o);
        a.completed = static_cast<bool>(a.lock);
    } catch (const fslock::system_error& e) {
        a.error = e.code();
        a.completed = true;
    }
    return a;
}

asio::awaitable<void> await_lock(path p, options o, answer& into) {
    try {
        into.lock = co_await fslock::async_acquire(std::move(p), std::move(o));
    } catch (const fslock::system_error& e) {
        into.error = e.code();
    }
    into.completed = true;
}

answer ask_in_coroutine(const path& p, const options& o, std::chrono::seconds limit) {
    answer a;
    asio::io_context io;
    asio::co_spawn(io, await_lock(p, o, a), [&](const std::exception_ptr&) { io.stop(); });
    io.run_for(limit);
    return a;
}

answer ask_with_callback(const path& p, const options& o, std::chrono::seconds limit) {
    answer a;
    asio::io_context io;
    fslock::async_try_acquire(io, p, limit, o, [&](fslock::error_code ec, lock_guard lock) {
        a.error = ec;
        a.lock = std::move(lock);
        a.completed = a.error || a.lock;
        io.stop();
    });
    io.run_for(limit);
    return a;
}

answer ask(const way& w, const path& p, const options& o, std::chrono::seconds limit) {
    const auto began = std::chrono::steady_clock::now();
    auto a = w.ask(p, o, limit);
    a.took = std::chrono::steady_clock::now() - began;
    return a;
}

/// What the library and Asio open once: the background context, the identity.
void warm_up() {
    const directory d;
    for (const auto& w : ways()) (void)w.ask(d / "x", options(), patience);
}

std::string contents_of(const path& p, const struct stat& facts) {
    constexpr off_t most = 1 << 20;
    if (S_ISLNK(facts.st_mode)) return std::filesystem::read_symlink(p).native();
    return S_ISREG(facts.st_mode) && facts.st_size <= most ? read_file(p) : std::string();
}

std::string picture_of_one(const path& p) {
    struct stat s {};
    if (::lstat(p.c_str(), &s) != 0) return p.native() + " cannot be looked at";
    std::ostringstream out;
    out << p.native() << " inode " << s.st_ino << " mode " << std::oct << s.st_mode << std::dec << " links "
        << s.st_nlink << " owner " << s.st_uid << " device " << s.st_rdev;
    if (!S_ISDIR(s.st_mode)) {
        out << " size " << s.st_size << " blocks " << s.st_blocks << " modified " << s.st_mtim.tv_sec << '.'
            << s.st_mtim.tv_nsec << " changed " << s.st_ctim.tv_sec << '.' << s.st_ctim.tv_nsec << ": "
            << contents_of(p, s);
    }
    return out.str();
}

void compare(std::ostringstream& problems, const std::vector<std::string>& before,
             const std::vector<std::string>& after) {
    for (const auto& line : before)
        if (std::find(after.begin(), after.end(), line) == after.end()) problems << "  gone: " << line << '\n';
    for (const auto& line : after)
        if (std::find(before.begin(), before.end(), line) == before.end())
            problems << "  new: " << line << '\n';
}

bool drop_privileges() {
    if (::geteuid() != 0) return true;
    return ::setgroups(0, nullptr) == 0 && ::setgid(nobody) == 0 && ::setuid(nobody) == 0;
}

bool mount_tmpfs(const char* at, const char* mount_options) {
    return ::unshare(CLONE_NEWNS) == 0 && ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
           ::mount("none", at, "tmpfs", 0, mount_options) == 0;
}

boost::test_tools::assertion_result possible(const std::string& problem) {
    boost::test_tools::assertion_result r(problem.empty());
    if (!r) r.message() << problem;
    return r;
}

}  // namespace

std::span<const way> ways() {
    static constexpr way all[] = {
        {"try_acquire", ask_blocking},
        {"try_acquire_once", ask_once},
        {"co_await async_acquire", ask_in_coroutine},
        {"async_try_acquire with a callback", ask_with_callback},
    };
    return all;
}

std::vector<std::string> picture_of(const path& root) {
    std::vector<std::string> all;
    for (const auto& e : std::filesystem::recursive_directory_iterator(root))
        all.push_back(picture_of_one(e.path()));
    std::sort(all.begin(), all.end());
    return all;
}

std::size_t open_descriptors() {
    const auto all = std::filesystem::directory_iterator("/proc/self/fd");
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

std::string refused(const path& d, const path& p, fslock::error_code expected, const options& o) {
    warm_up();
    std::ostringstream problems;
    for (const auto& w : ways()) {
        const auto before = picture_of(d);
        const auto descriptors = open_descriptors();
        const auto a = ask(w, p, o, too_late);
        if (!a.completed) problems << w.name << ": no answer\n";
        if (a.lock) problems << w.name << ": a lock, instead of " << expected.message() << '\n';
        if (a.error != expected)
            problems << w.name << ": " << a.error.message() << ", instead of " << expected.message() << '\n';
        if (a.took > at_once) problems << w.name << ": not at once\n";
        if (open_descriptors() != descriptors) problems << w.name << ": a descriptor is left\n";
        compare(problems, before, picture_of(d));
    }
    return problems.str();
}

std::string obtainable(const path& p, const options& o) {
    std::ostringstream problems;
    for (const auto& w : ways()) {
        auto a = ask(w, p, o, patience);
        if (a.error) problems << w.name << ": " << a.error.message() << '\n';
        if (!a.lock) {
            problems << w.name << ": no lock\n";
            continue;
        }
        const auto text = read_file(p);
        if (text.find(a.lock.writer_epoch()) == std::string::npos) problems << w.name << ": another record\n";
        fslock::error_code ec;
        a.lock.release(ec);
        if (ec) problems << w.name << ": release: " << ec.message() << '\n';
        if (std::filesystem::exists(std::filesystem::symlink_status(p)))
            problems << w.name << ": not removed\n";
    }
    return problems.str();
}

std::string wait_until_told(const path& p, const told& t, fslock::event_kind kind, const options& o) {
    std::string words;
    {
        asio::io_context io;
        fslock::async_acquire(io, p, t.listening(o), [&](fslock::error_code ec, const lock_guard& lock) {
            words = lock ? "a lock" : ec.message();
        });
        const auto end = std::chrono::steady_clock::now() + patience;
        while (!t.has(kind) && words.empty() && std::chrono::steady_clock::now() < end)
            (void)io.run_one_for(100ms);
    }
    return !words.empty() || t.has(kind) ? words : std::string("not told: ") + to_string(kind);
}

std::string in_child(const told_in_words& body) {
    child c([&](child::pipe_to_parent& parent) {
        std::string words;
        try {
            words = body();
        } catch (const std::exception& e) {
            words = std::string("thrown: ") + e.what();
        }
        for (const char letter : words) parent.say(letter);
        parent.say('\0');
    });
    std::string words;
    for (char letter = c.hear(); letter != '\0'; letter = c.hear()) words += letter;
    return words;
}

std::string without_privileges(const told_in_words& body) {
    return in_child([&] { return drop_privileges() ? body() : std::string("cannot become another user"); });
}

std::string on_tmpfs(const path& at, const char* mount_options, const told_in_words& body) {
    return in_child(
        [&] { return mount_tmpfs(at.c_str(), mount_options) ? body() : std::string("cannot mount"); });
}

boost::test_tools::assertion_result two_users(boost::unit_test::test_unit_id id) {
    return ::geteuid() == 0 ? ordinary_user(id) : possible("only root can have files of two users");
}

boost::test_tools::assertion_result threads_in_children(boost::unit_test::test_unit_id) {
#if defined(__SANITIZE_THREAD__)
    return possible("ThreadSanitizer cannot follow the threads of a forked child");
#else
    return possible("");
#endif
}

boost::test_tools::assertion_result ordinary_user(boost::unit_test::test_unit_id id) {
    if (auto followed = threads_in_children(id); !followed) return followed;
    const directory d;
    (void)::chmod(d.path().c_str(), 0755);
    return possible(in_child([&] {
        if (!drop_privileges()) return "this root cannot become another user";
        return ::access(d.path().c_str(), X_OK) == 0 ? ""
                                                     : "another user cannot reach the directory of the tests";
    }));
}

boost::test_tools::assertion_result mounts(boost::unit_test::test_unit_id id) {
    if (auto followed = threads_in_children(id); !followed) return followed;
    const directory d;
    const auto problem = on_tmpfs(d.path(), "size=64k", [] { return std::string(); });
    return possible(problem.empty() ? problem : "a tmpfs cannot be mounted here (unshare --mount)");
}

boost::test_tools::assertion_result no_sanitizer(boost::unit_test::test_unit_id) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return possible("a sanitizer needs descriptors of its own");
#else
    return possible("");
#endif
}

boost::test_tools::assertion_result devices(boost::unit_test::test_unit_id) {
    const directory d;
    const bool made = ::mknod((d / "null").c_str(), S_IFCHR | 0600, makedev(1, 3)) == 0;
    const int fd = made ? ::open((d / "null").c_str(), O_RDONLY | O_CLOEXEC) : -1;
    if (fd >= 0) (void)::close(fd);
    return possible(fd >= 0 ? "" : "devices cannot be made here (mknod)");
}

}  // namespace support
