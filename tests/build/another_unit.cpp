// The other one, see one_unit.cpp. An Asio header comes first here, which must change nothing.
#if defined(FSLOCK_USE_BOOST_ASIO)
#include <boost/asio/io_context.hpp>
#else
#include <asio/io_context.hpp>
#endif

#include <fslock/fslock.hpp>

std::error_code from_another_unit(const fslock::options& o) { return fslock::check(o); }
