// fslock: a filesystem lock with an owner, for Asio coroutines. Everything; each header stands on its own as well.
#pragma once

#include "acquire.hpp"     // getting a lock: async_acquire, async_try_acquire, async_try_acquire_once, and blocking twins
#include "diagnose.hpp"    // whether a directory is a place for locks
#include "error.hpp"       // errc
#include "event.hpp"       // what on_event is told, and its words
#include "inspect.hpp"     // who has a lock, the locks of a directory, breaking a lock
#include "lock_guard.hpp"  // a lock that is held: verify, lost, release
#include "options.hpp"     // how a lock is taken, kept fresh and judged
#include "sweep.hpp"       // removing what the dead left beside locks
#include "with_lock.hpp"   // work that is cancelled when its lock is lost
