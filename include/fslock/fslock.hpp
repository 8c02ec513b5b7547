// fslock: a filesystem lock with an owner, for Asio coroutines.
#pragma once

#include "acquire.hpp"
#include "diagnose.hpp"
#include "error.hpp"
#include "event.hpp"
#include "inspect.hpp"
#include "lock_guard.hpp"
#include "options.hpp"
#include "sweep.hpp"
#include "with_lock.hpp"
