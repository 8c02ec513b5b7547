// The worker processes, as their parent has them in hand.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "message.hpp"

namespace demo {

/// The run cannot go on; the text is for people.
struct failure : std::runtime_error {
    using std::runtime_error::runtime_error;
};

class descriptor {
 public:
    descriptor() = default;
    explicit descriptor(int fd) : fd_(fd) {}
    descriptor(descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    descriptor& operator=(descriptor&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~descriptor() { close(); }
    void close() noexcept;
    [[nodiscard]] int get() const noexcept { return fd_; }

 private:
    int fd_ = -1;
};

/// Starts workers, hears them, and signals only them. The destructor kills those that are left.
class crew {
 public:
    crew(std::string program, std::filesystem::path directory);
    crew(const crew&) = delete;
    crew& operator=(const crew&) = delete;
    ~crew();

    /// Starts a worker; returns its pid.
    pid_t start(char name);
    /// SIGSTOP; returns when the worker stands still.
    void freeze(char name);
    /// SIGCONT.
    void thaw(char name);
    /// SIGKILL.
    void kill(char name);
    /// Tells every worker to end its turn and exit.
    void dismiss();

    /// The next piece of news; nothing when there is none until `until`, or when all workers have exited.
    /// Throws `failure` when a worker died that nobody killed.
    [[nodiscard]] std::optional<message> hear(steady until);
    /// Whether a worker is left, or news that was not heard.
    [[nodiscard]] bool busy() const noexcept { return !ended_; }

 private:
    struct process {
        pid_t pid = 0;
        descriptor input;  ///< closing it dismisses the worker
        bool killed = false;
    };

    void signal(char name, int number);
    void note_exit(char name, const process& p, int status) const;
    void reap();
    void read_some();
    std::optional<message> take_line();

    std::string program_;
    std::filesystem::path directory_;
    std::map<char, process> workers_;
    descriptor news_;
    descriptor news_end_;  ///< the end that is handed to workers
    std::string unread_;
    bool ended_ = false;
};

}  // namespace demo
