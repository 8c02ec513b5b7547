// The one place that knows which Asio this is: standalone Asio 1.22.1 and newer, or the one of Boost 1.77 and newer.
#pragma once

// Defined by what an installed fslock says of itself (pkg-config, CMake, Meson) where its library was built for
// Boost.Asio; never by hand.
#if defined(FSLOCK_USE_BOOST_ASIO)
#define FSLOCK_ASIO_HEADER(name) <boost/asio/name>
#else
#define FSLOCK_ASIO_HEADER(name) <asio/name>
#endif

#include FSLOCK_ASIO_HEADER(any_io_executor.hpp)
#include FSLOCK_ASIO_HEADER(associated_allocator.hpp)
#include FSLOCK_ASIO_HEADER(associated_cancellation_slot.hpp)
#include FSLOCK_ASIO_HEADER(associated_executor.hpp)
#include FSLOCK_ASIO_HEADER(async_result.hpp)
#include FSLOCK_ASIO_HEADER(cancellation_type.hpp)
#include FSLOCK_ASIO_HEADER(error.hpp)
#include FSLOCK_ASIO_HEADER(execution.hpp)
#include FSLOCK_ASIO_HEADER(execution_context.hpp)
#include FSLOCK_ASIO_HEADER(post.hpp)
#include FSLOCK_ASIO_HEADER(prefer.hpp)
#include FSLOCK_ASIO_HEADER(query.hpp)
#include FSLOCK_ASIO_HEADER(system_executor.hpp)
#include FSLOCK_ASIO_HEADER(use_awaitable.hpp)
#include FSLOCK_ASIO_HEADER(version.hpp)

#if defined(FSLOCK_USE_BOOST_ASIO)
#define FSLOCK_ASIO_VERSION BOOST_ASIO_VERSION
#include <boost/system/error_code.hpp>
#include <boost/system/system_error.hpp>
#else
#define FSLOCK_ASIO_VERSION ASIO_VERSION
#endif

#if FSLOCK_ASIO_VERSION >= 102300
#include FSLOCK_ASIO_HEADER(append.hpp)
#include FSLOCK_ASIO_HEADER(deferred.hpp)
#else
#include FSLOCK_ASIO_HEADER(experimental/append.hpp)
#endif

#include <system_error>

namespace fslock {

#if defined(FSLOCK_USE_BOOST_ASIO)
namespace asio = ::boost::asio;
using error_code = ::boost::system::error_code;
using system_error = ::boost::system::system_error;
#else
namespace asio = ::asio;
using error_code = std::error_code;
using system_error = std::system_error;
#endif

namespace detail {

#if FSLOCK_ASIO_VERSION >= 102300
using asio::append;
using default_token = asio::deferred_t;
#else
using asio::experimental::append;
using default_token = asio::use_awaitable_t<>;  // the only thing that an awaitable<> of these versions can await
#endif

/// In every file that includes this: it links with a library of the same flavour, or not at all.
#if defined(FSLOCK_USE_BOOST_ASIO)
extern const char this_needs_the_library_fslock_boost;
[[gnu::used]] const char* const flavour = &this_needs_the_library_fslock_boost;
#else
extern const char this_needs_the_library_fslock;
[[gnu::used]] const char* const flavour = &this_needs_the_library_fslock;
#endif

/// A code of the inner rooms, which know `std::error_code` alone, as one of the interface. Boost wraps the codes of
/// the standard library, and then they are equal to none of its own: those of the system are made anew.
[[nodiscard]] inline error_code to_public(std::error_code inner) noexcept {
#if defined(FSLOCK_USE_BOOST_ASIO)
    if (inner.category() == std::system_category()) return {inner.value(), boost::system::system_category()};
    if (inner.category() == std::generic_category()) return {inner.value(), boost::system::generic_category()};
#endif
    return error_code(inner);
}

/// What the first argument of an operation may be: an executor, or the context that has one.
template <class T>
concept io_source =
    std::convertible_to<T, asio::any_io_executor> || std::convertible_to<T, asio::execution_context&>;

template <io_source Source>
[[nodiscard]] asio::any_io_executor executor_of(Source&& source) {
    if constexpr (std::convertible_to<Source, asio::any_io_executor>) {
        return std::forward<Source>(source);
    } else {
        return source.get_executor();
    }
}

/// Where an operation without an executor lives: the executor of its handler, if that is one for I/O, else the
/// system context.
template <class Handler>
[[nodiscard]] asio::any_io_executor executor_for(const Handler& handler) {
    using executor = asio::associated_executor_t<Handler, asio::system_executor>;
    if constexpr (std::is_convertible_v<executor, asio::any_io_executor>) {
        return asio::get_associated_executor(handler, asio::system_executor());
    } else {
        return asio::system_executor();
    }
}

}  // namespace detail
}  // namespace fslock
