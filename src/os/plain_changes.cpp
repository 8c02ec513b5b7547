// For systems, and builds, where the kernel tells nothing.
#include <unistd.h>

#include <cerrno>

#include "changes.hpp"

namespace fslock::os {
namespace {

std::error_code unsupported() { return {ENOSYS, std::system_category()}; }

}  // namespace

result<int> open_changes() { return unsupported(); }
result<int> watch(int, const std::string&, watched) { return unsupported(); }
void unwatch(int, int) noexcept {}
news read_changes(int) { return {}; }
result<int> open_process(int) { return unsupported(); }
void close_descriptor(int fd) noexcept { (void)::close(fd); }

}  // namespace fslock::os
