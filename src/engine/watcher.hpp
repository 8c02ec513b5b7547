// Who wants to know what happens to which files and processes.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "../os/changes.hpp"
#include "due_heap.hpp"
#include "fslock/detail/asio.hpp"

#include FSLOCK_ASIO_HEADER(posix/stream_descriptor.hpp)

namespace fslock::engine {

/// The one queue of changes of a context, made when first needed; readable for as long as anything is watched, since a
/// pending read counts as work of the context. Has a mutex of its own, since a watch must not be removed between its
/// making and its listing, and both are system calls; they do not hang, because only files on local filesystems are
/// watched.
class watcher {
 public:
    using item = std::shared_ptr<due_item>;

    explicit watcher(asio::any_io_executor executor) : executor_(std::move(executor)) {}
    watcher(const watcher&) = delete;
    watcher& operator=(const watcher&) = delete;
    ~watcher() { close(); }

    /// What happens to the record at `path` is for `who`. The name of the watch.
    [[nodiscard]] os::result<int> watch_record(const item& who, const std::string& path);
    void unwatch_record(int id, const due_item& who) noexcept;
    /// What happens to the directory itself is for everybody.
    [[nodiscard]] os::result<int> watch_directory(const std::string& path);
    void unwatch_directory(int id) noexcept;
    /// Calls `ended`, on the context, when the process ends. One process per item.
    [[nodiscard]] std::error_code watch_process(const due_item& who, int pid, std::function<void()> ended);
    void unwatch_process(const due_item& who) noexcept;

    /// Whether the read has to be started or cancelled.
    [[nodiscard]] bool needs_settling() const noexcept;
    /// Does that. `readable` is called once, on the context, and has to call `read` or `not_read`.
    void settle(const std::function<void(error_code)>& readable);

    struct heard {
        std::vector<item> whom;
        bool everybody = false;
    };
    [[nodiscard]] heard read();
    void not_read() noexcept { state_ = state::idle; }

    /// The context must not have our descriptors while it forks: their numbers mean nothing to the child. Threads of the
    /// pool go on meanwhile; they get no new watch until it is over.
    void before_fork() noexcept;
    void after_fork_in_parent();
    void after_fork_in_child() noexcept;

    /// From now on nothing is watched.
    void close() noexcept;

 private:
    enum class state : std::uint8_t { idle, reading, cancelling };
    struct listener {
        const due_item* name;
        std::weak_ptr<due_item> who;
    };
    struct process {
        process() = default;
        process(const process&) = delete;
        process& operator=(const process&) = delete;
        ~process();

        std::optional<asio::posix::stream_descriptor> descriptor;
        std::function<void()> ended;
        int parked = -1;  ///< the descriptor during a fork
    };

    // Under the mutex.
    [[nodiscard]] std::error_code refusal() const;  ///< why nothing can be watched now, or none
    /// Gives `fd` to the context, or closes it.
    [[nodiscard]] std::error_code adopt(std::optional<asio::posix::stream_descriptor>& into, int fd);
    [[nodiscard]] std::error_code open();
    void wait_for_end(process& p);
    void count() noexcept { wanted_ = !listeners_.empty() || !directories_.empty(); }

    std::mutex mutex_;
    asio::any_io_executor executor_;
    std::optional<asio::posix::stream_descriptor> queue_;
    int parked_queue_ = -1;  ///< the descriptor during a fork
    bool forking_ = false;
    bool closed_ = false;
    std::unordered_multimap<int, listener> listeners_;
    std::unordered_map<int, std::size_t> directories_;  ///< and for how many
    std::unordered_map<const due_item*, process> processes_;
    std::atomic<bool> wanted_{false};
    std::atomic<state> state_{state::idle};
};

}  // namespace fslock::engine
