// What of Asio only coroutines need.
#pragma once

#include "asio.hpp"

#include FSLOCK_ASIO_HEADER(awaitable.hpp)
#include FSLOCK_ASIO_HEADER(bind_cancellation_slot.hpp)
#include FSLOCK_ASIO_HEADER(bind_executor.hpp)
#include FSLOCK_ASIO_HEADER(cancellation_signal.hpp)
#include FSLOCK_ASIO_HEADER(cancellation_state.hpp)
#include FSLOCK_ASIO_HEADER(co_spawn.hpp)
#include FSLOCK_ASIO_HEADER(dispatch.hpp)
#include FSLOCK_ASIO_HEADER(experimental/parallel_group.hpp)
#include FSLOCK_ASIO_HEADER(redirect_error.hpp)
#include FSLOCK_ASIO_HEADER(strand.hpp)
#include FSLOCK_ASIO_HEADER(this_coro.hpp)
