// Child processes of a test: run a function in one, talk to it line by line, end it.
#pragma once

#include <sys/types.h>

#include <boost/test/unit_test.hpp>
#include <csignal>
#include <functional>
#include <string>
#include <vector>

namespace support {

/// A forked child that runs `body` and then ends by `_exit`. Whoever waits, waits for a generous limit and fails the
/// test when it passes. The destructor kills the child and reaps it.
class child {
 public:
    /// What `body` can say to the test, and wait for from it.
    class pipe_to_parent {
     public:
        pipe_to_parent(int in, int out) noexcept : in_(in), out_(out) {}
        void say(char c) const;       ///< one byte to the parent
        [[nodiscard]] char hear() const;  ///< one byte from the parent; ends the child when the parent is gone

     private:
        int in_;
        int out_;
    };

    explicit child(const std::function<void(pipe_to_parent&)>& body);
    child(const child&) = delete;
    child& operator=(const child&) = delete;
    ~child();

    [[nodiscard]] pid_t pid() const noexcept { return pid_; }
    /// The next byte that the child says. Throws when it says nothing for a minute, or ends.
    char hear();
    /// Whether the child says something within `milliseconds`.
    [[nodiscard]] bool speaks_within(int milliseconds);
    void say(char c);
    void signal(int number) const { (void)::kill(pid_, number); }
    /// Reaps the child, which has to end by itself within a minute, and returns its wait status.
    int wait();
    /// Kills and reaps it.
    void kill_and_reap();

 private:
    pid_t pid_ = -1;
    int from_child_ = -1;
    int to_child_ = -1;
    bool reaped_ = false;
};

/// For a process that a child forks: it must not outlive the test either.
void die_with_parent();

/// Precondition, for forks beside threads that allocate: AddressSanitizer of g++ 12 leaves its allocator's locks to the
/// child as they are, and the child waits for ever.
boost::test_tools::assertion_result forks_of_threads(boost::unit_test::test_unit_id);
/// Precondition, for a child that exits and checks for leaks: what only threads of its parent point to seems to leak.
boost::test_tools::assertion_result no_leak_checker(boost::unit_test::test_unit_id);

/// Starts a program, waits for it and returns its wait status; for tests that need a fresh process image.
int run_program(const std::vector<std::string>& command);

}  // namespace support
