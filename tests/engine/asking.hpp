// Asking for a lock in every way there is, and looking whether that left anything behind.
#pragma once

#include <boost/test/unit_test.hpp>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "crafted.hpp"
#include "fslock/fslock.hpp"
#include "support/directory.hpp"

namespace support {

/// An error of the system, as the library that this flavour takes its error codes from has it.
[[nodiscard]] inline fslock::error_code os_error(int code) {
#if defined(FSLOCK_USE_BOOST_ASIO)
    return {code, boost::system::system_category()};
#else
    return {code, std::system_category()};
#endif
}

/// What asking came to.
struct answer {
    fslock::error_code error;
    fslock::lock_guard lock;
    bool completed = false;
    std::chrono::steady_clock::duration took{};
};

/// One way to ask. A test fails, and does not hang, when it has not answered within `limit`.
struct way {
    const char* name;
    answer (*ask)(const std::filesystem::path&, const fslock::options&, std::chrono::seconds limit);
};

/// A blocking twin, one attempt, a coroutine that waits for as long as it takes, a callback with a limit.
[[nodiscard]] std::span<const way> ways();

/// All that is in a directory and below: names, inodes, owners, modes, sizes, times and contents.
[[nodiscard]] std::vector<std::string> picture_of(const std::filesystem::path& root);

[[nodiscard]] std::size_t open_descriptors();

/// Asks in every way for the lock at `path`, and says what was not as it has to be: each answer is `expected`,
/// at once; nothing in `d` has changed; no descriptor is left. Empty when all is well.
[[nodiscard]] std::string refused(const std::filesystem::path& d, const std::filesystem::path& path,
                                  fslock::error_code expected, const fslock::options& o = fslock::options());

/// The same, where each answer is a lock that stands there as a record, and goes without a trace.
[[nodiscard]] std::string obtainable(const std::filesystem::path& path,
                                     const fslock::options& o = fslock::options());

/// Waits for the lock at `path` until `kind` is told to `t`, and no longer; says what came instead.
[[nodiscard]] std::string wait_until_told(const std::filesystem::path& path, const told& t,
                                          fslock::event_kind kind, const fslock::options& o);

// ---- children in other circumstances; what `body` returns, or what went wrong with the child ----------------

using told_in_words = std::function<std::string()>;

[[nodiscard]] std::string in_child(const told_in_words& body);
/// Without the powers of root; as the user `nobody` if we are root.
[[nodiscard]] std::string without_privileges(const told_in_words& body);
/// With a tmpfs of its own at `at`, mounted with `mount_options`.
[[nodiscard]] std::string on_tmpfs(const std::filesystem::path& at, const char* mount_options,
                                   const told_in_words& body);

// ---- preconditions ------------------------------------------------------------------------------------------

/// ThreadSanitizer cannot follow the threads of a child that was forked while there were others.
boost::test_tools::assertion_result threads_in_children(boost::unit_test::test_unit_id);
/// Somebody whom the system denies something.
boost::test_tools::assertion_result ordinary_user(boost::unit_test::test_unit_id);
boost::test_tools::assertion_result two_users(boost::unit_test::test_unit_id);
boost::test_tools::assertion_result mounts(boost::unit_test::test_unit_id);
/// A sanitizer opens files of its own at any time.
boost::test_tools::assertion_result no_sanitizer(boost::unit_test::test_unit_id);
boost::test_tools::assertion_result devices(boost::unit_test::test_unit_id);

}  // namespace support
