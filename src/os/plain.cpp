// For systems, and builds, without the facilities of Linux: named temps, flock, pids and names, nothing more.
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "system.hpp"

namespace fslock::os::system {
namespace {

std::error_code unsupported(int code) { return {code, std::system_category()}; }

}  // namespace

int open_unnamed(const char*, mode_t) {
    errno = EOPNOTSUPP;
    return -1;
}

std::error_code link_unnamed(int, const char*) { return unsupported(EOPNOTSUPP); }

std::error_code rename_exclusive(const char*, const char*) { return unsupported(EINVAL); }

witness_kind strongest_witness() noexcept { return witness_kind::flock; }

lock_state lock_byte_of(int, lock_byte) noexcept { return lock_state::unknown; }

lock_state probe_byte_of(int, lock_byte) noexcept { return lock_state::unknown; }

std::error_code unlock_byte_of(int, lock_byte) noexcept { return {}; }

void show_waiting(int) noexcept {}

bool is_waited_for(int) noexcept { return false; }

identity read_identity() {
    identity me;
    me.pid = static_cast<int>(::getpid());
    utsname names{};
    if (::uname(&names) == 0) me.nodename = names.nodename;
    if (me.nodename.empty()) me.nodename = "unknown-host";
    me.hostname = me.nodename;
    return me;
}

/// kill(2): only ESRCH says that there is no such process; EPERM says that there is one.
process_facts look_up(int pid) {
    process_facts facts;
    const bool gone = ::kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH;
    facts.life = gone ? process_facts::state::gone : process_facts::state::exists;
    return facts;
}

}  // namespace fslock::os::system
