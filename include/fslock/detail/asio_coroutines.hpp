// What of Asio only coroutines need.
#pragma once

#include "asio.hpp"

#include <asio/awaitable.hpp>
#include <asio/bind_executor.hpp>
#include <asio/cancellation_state.hpp>
#include <asio/co_spawn.hpp>
#include <asio/experimental/parallel_group.hpp>
#include <asio/redirect_error.hpp>
#include <asio/strand.hpp>
#include <asio/this_coro.hpp>
