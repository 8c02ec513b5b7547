#include "exits.hpp"

#include <cerrno>
#include <iostream>

#include "fslock/error.hpp"
#include "text.hpp"

namespace cli {
namespace {

bool is(std::error_code e, int code) { return e == std::error_code(code, std::system_category()); }

/// The errors of fslock say it themselves.
std::string next_step(std::error_code e) {
    if (is(e, ENOENT)) return "make its directory first, or check the path";
    if (is(e, EACCES) || is(e, EPERM)) return "it belongs to another user: ask them, or use a directory of your own";
    if (is(e, EISDIR)) return "name a file in that directory";
    if (is(e, ENOTDIR)) return "a part of the path is a file: check the path";
    if (is(e, ENAMETOOLONG)) return "choose a name of at most 208 bytes";
    if (is(e, ENOSPC) || is(e, EDQUOT)) return "free some space";
    if (is(e, EROFS)) return "use a directory on a filesystem that may be written to";
    if (is(e, EBUSY)) return "try again, or look after that process";
    if (is(e, EMFILE) || is(e, ENFILE)) return "raise the limit of open files (ulimit -n)";
    if (is(e, EOPNOTSUPP)) return "use an fslock that was built like the one of the lock's owner";
    return {};
}

}  // namespace

int status_for(std::error_code e) noexcept {
    if (e == fslock::errc::not_a_lock_file) return not_a_lock;
    if (e == fslock::errc::reserved_name || e == fslock::errc::bad_options) return usage;
    if (is(e, EISDIR) || is(e, ENAMETOOLONG) || is(e, EINVAL)) return usage;
    if (is(e, ENOENT) || is(e, ENOTDIR)) return not_there;
    if (is(e, EACCES) || is(e, EPERM) || is(e, EROFS)) return not_permitted;
    if (is(e, EIO) || is(e, ENOSPC) || is(e, EDQUOT) || is(e, ESTALE)) return io_failure;
    if (is(e, EBUSY)) return unavailable;
    return system_failure;
}

int complain(const std::string& what, std::error_code error) {
    auto text = (what.empty() ? "''" : what) + ": " + error.message();
    if (const auto next = next_step(error); !next.empty()) text += "; " + next;
    say(text);
    return status_for(error);
}

void say(const std::string& text) { std::cerr << "fslock: " + printable(text) + '\n' << std::flush; }

}  // namespace cli
