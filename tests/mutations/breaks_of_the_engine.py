"""Breaks of the engine, of src/engine, and of what it is built on, src/os."""

from workshop import Break

linux = "src/os/linux.cpp"
changes = "src/os/linux_changes.cpp"
posix_world = "src/os/posix_world.cpp"
process_state = "src/os/process_state.cpp"
held_lock = "src/engine/held_lock.cpp"
pool = "src/engine/pool.cpp"
registry = "src/engine/registry.cpp"
running = "src/engine/running.cpp"
starting = "src/engine/starting.cpp"
waking = "src/engine/waking.cpp"
watcher = "src/engine/watcher.cpp"
operation = "src/engine/operation.cpp"
event_sink = "src/engine/event_sink.cpp"

breaks = [
    # ---- the system ------------------------------------------------------------------------------------------------
    Break("zombie counts as alive", "a lock whose owner was killed waits for a parent to reap it", linux,
          "return n == 0 ? process_facts::state::exists : process_facts::state::gone;",
          "return process_facts::state::exists;", "engine", "death/the_kernel_tells_of_the_end_of_an_owner_without_a_witness"),
    Break("stat line read from its first parenthesis", "a process with a strange name has no start time", linux,
          "stat.rfind(')')", "stat.find(')')", "engine", "a_process_may_have_any_name"),
    Break("record not close-on-exec", "another program keeps the lock of the owner that it replaced", linux,
          "O_TMPFILE | O_RDWR | O_CLOEXEC", "O_TMPFILE | O_RDWR", "process",
          "an_owner_that_became_another_program_is_taken_over"),
    Break("overflow of events ignored", "a waiter whose event was dropped sleeps until its poll", changes,
          "all.overflow = true;", "", "engine", "overflow/a_lost_event_wakes_everybody"),
    Break("symbolic link followed", "a file elsewhere is taken for the record", posix_world,
          "O_RDONLY : O_RDWR) | O_NOFOLLOW |", "O_RDONLY : O_RDWR) |", "engine",
          "bad_input/a_symbolic_link_is_no_lock_whatever_it_leads_to"),
    Break("opening waits for the other end", "a FIFO at the path hangs every contender", posix_world,
          "O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY", "O_NOFOLLOW | O_CLOEXEC | O_NOCTTY", "engine",
          "bad_input/a_fifo_is_no_lock_and_nobody_waits_for_its_other_end"),
    Break("witness not closed in a forked child", "a child keeps its dead parent's lock", process_state,
          "if (noted_[fd]) (void)::close(static_cast<int>(fd));", "{}", "process",
          "a_forked_child_neither_owns_nor_keeps_its_dead_parents_lock"),
    Break("inherited descriptor closed twice", "a child closes a lock of its own", process_state,
          "if (generation != generation_) return;", "(void)generation;", "steps",
          "an_inherited_file_closes_no_descriptor_of_the_child"),

    # ---- holding ---------------------------------------------------------------------------------------------------
    Break("inherited guard releases", "a forked child gives its parent's lock back", held_lock,
          "if (inherited() || released_.exchange(true)) return {};", "if (released_.exchange(true)) return {};", "process",
          "a_forked_child_neither_owns_nor_keeps_its_dead_parents_lock"),
    Break("hung beat not reported", "a holder whose disk hangs is not told that it is at risk", held_lock,
          "note_lateness(make_error_code(std::errc::timed_out));", "", "filesystems",
          "held/a_beat_that_hangs_is_reported_while_it_hangs"),
    Break("beats pile up", "a disk that hung for long is flooded", held_lock,
          "if (!beating_.exchange(true)) return true;", "if (!beating_.exchange(true) || true) return true;", "filesystems",
          "held/a_mount_that_comes_back_is_not_flooded_with_beats"),
    Break("passing fault ends the heartbeat", "a record that is damaged for a moment is a loss", held_lock,
          "case core::standing::unsure: return false;", "case core::standing::unsure: lost_ = true; return false;", "engine",
          "as_the_first_implementation/a_heartbeat_without_a_witness_survives_a_record_that_is_damaged_for_a_while"),
    Break("loss not told", "the holder works on without its lock", held_lock,
          "report(event_kind::lost, make_error_code(errc::lost), 0, out.why);", "", "engine",
          "events/a_beat_tells_a_loss_and_is_the_last"),
    Break("loss ends no wait for it", "the work under a lost lock is not cancelled", registry,
          "ended = take_loss_waits(held, {});", "", "engine",
          "losses/a_loss_before_the_wait_is_found_at_once"),
    Break("exit does not wait", "a program that ends leaves its lock on a shared filesystem for 75 seconds", pool,
          "exit_until_ = std::chrono::steady_clock::now() + longest_exit;", "return;", "faults",
          "faults_of_filesystems/a_program_that_ends_gives_back_its_locks_on_a_shared_filesystem"),
    Break("one beat only", "a record grows old while its owner lives", waking,
          "of.due.schedule(held, now + held.interval());", "", "engine",
          "as_the_first_implementation/a_heartbeat_without_a_witness_survives_a_record_that_is_damaged_for_a_while"),

    # ---- waiting ---------------------------------------------------------------------------------------------------
    Break("events ignored", "a release is noticed at the next poll", waking,
          "for (const auto& item : heard.whom) stir(item, all);", "", "engine", "wake/a_release_in_another_context_wakes"),
    Break("end of a process ignored", "the death of an owner without witness is noticed at the next poll", waking,
          "stir(op, all);\n    }\n    answer(all);", "}\n    answer(all);", "engine",
          "death/the_kernel_tells_of_the_end_of_an_owner_without_a_witness"),
    Break("watch not removed", "a context never runs dry", operation,
          "if (record || process) home->unwatch(*this, record, process);", "(void)process;", "engine",
          "wake/nothing_is_watched_when_nobody_waits"),
    Break("directory not watched", "a lock whose directory was moved is held on", watcher,
          "if (directories_.contains(change.id)) all.everybody = true;", "", "engine",
          "losses/on_event_says_what_happened_as_it_happens"),
    Break("queue not first come first served", "a waiter starves in its own process", starting,
          "entry.queue.insert(entry.queue.end(), op);", "entry.queue.insert(entry.queue.begin(), op);", "engine",
          "acquire/first_come_first_served_whoever_leaves_in_between"),
    Break("deadline ignored while queued", "a timeout is not kept behind a lock of the same process", starting,
          "if (op->deadline()) schedule(*op, *op->deadline());", "", "engine",
          "in_line/a_timeout_is_kept_behind_a_lock_of_the_same_context"),
    Break("turn not yielded", "one process takes the lock again and again while others wait", starting,
          "return until.has_value();", "return false;", "engine", "yield/who_gave_back_leaves_the_lock_to_who_waited"),
    Break("two have the turn", "two operations of one process hold one lock", starting,
          "if (!std::exchange(entry.taken, true)) mine = turn(shared_from_this(), entry);",
          "mine = turn(shared_from_this(), entry);", "engine", "acquire/first_come_first_served_whoever_leaves_in_between"),
    Break("turn not passed on", "nobody of the process gets the lock after a release", registry,
          "run_in_turn(std::move(next));", "",
          "engine", "as_the_first_implementation/concurrent_callers_come_one_after_the_other"),

    # ---- endings ---------------------------------------------------------------------------------------------------
    Break("cancelled acquisition keeps its record", "a lock that nobody has is held until the process ends", running,
          "if (done == nullptr) return;", "if (done == nullptr) return (void)new lock_guard(std::move(lock));", "filesystems",
          "slow/a_cancelled_acquisition_leaves_nothing_once_its_call_returns"),
    Break("cancellation not heard", "a cancelled acquisition waits on", running,
          "run(op, core::wake::cancelled);", "", "engine",
          "acquire/every_kind_of_cancellation_ends_a_wait"),
    Break("waits go on when the context ends", "waits outlive their context, and leave their temps", registry,
          "for (const auto& op : waiting) run(op, core::wake::cancelled);", "", "engine",
          "interrupted_by_the_end/of_a_context_that_has_the_locks*"),
    Break("event handler called inline", "a handler runs inside of the library, where it may deadlock", event_sink,
          "if (const auto home = home_.lock()) home->post_delivery(shared_from_this());", "deliver();", "engine",
          "events/events_come_on_the_executor_of_the_operation_one_at_a_time"),
    Break("alarm set without a look at those that are set", "alarms multiply until one thread does nothing else", waking,
          "if (shut_ || !away_.needs_tick()) return;", "if (shut_ || away_.due.empty()) return;", "filesystems",
          "alarms/a_waiter_that_polls_beside_a_held_lock_does_not_multiply_alarms"),
    Break("lock on a mount is no work", "its loss is reported to a loop that nobody runs", starting,
          "lock.is_work = true;\n        ++held_away_;", "", "filesystems",
          "work/a_context_has_work_while_a_lock_on_a_mount_is_held"),
    Break("watch made during a fork", "a context that is told of a fork loses a descriptor", watcher,
          "if (forking_) return error_code(asio::error::try_again);", "", "engine",
          "watches_in_a_fork/a_new_one_is_refused_and_the_others_go_on"),
]
