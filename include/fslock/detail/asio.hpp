// The one place that knows which Asio this is: standalone Asio 1.22.1 and newer.
#pragma once

#include <asio/any_io_executor.hpp>
#include <asio/associated_allocator.hpp>
#include <asio/associated_cancellation_slot.hpp>
#include <asio/associated_executor.hpp>
#include <asio/async_result.hpp>
#include <asio/cancellation_type.hpp>
#include <asio/error.hpp>
#include <asio/execution.hpp>
#include <asio/execution_context.hpp>
#include <asio/post.hpp>
#include <asio/prefer.hpp>
#include <asio/query.hpp>
#include <asio/system_executor.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/version.hpp>

#if ASIO_VERSION >= 102300
#include <asio/append.hpp>
#include <asio/deferred.hpp>
#else
#include <asio/experimental/append.hpp>
#endif

#include <system_error>

namespace fslock {

namespace asio = ::asio;
using error_code = std::error_code;
using system_error = std::system_error;

namespace detail {

#if ASIO_VERSION >= 102300
using asio::append;
using default_token = asio::deferred_t;
#else
using asio::experimental::append;
using default_token = asio::use_awaitable_t<>;  // the only thing that an awaitable<> of these versions can await
#endif

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
