// The other one, see one_unit.cpp. An Asio header comes first here, which must change nothing.
#include <asio/io_context.hpp>
#include <fslock/fslock.hpp>

std::error_code from_another_unit(const fslock::options& o) { return fslock::check(o); }
