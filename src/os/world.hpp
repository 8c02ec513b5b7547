// Everything that the lock protocol knows of the operating system.
//
// The protocol (src/core) calls a `world` and nothing else: no system call, clock, pid or random number is used
// outside of src/os. Each call is one step that other processes can observe.
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "call.hpp"
#include "result.hpp"

namespace fslock::os {

class world;

/// An open file. Empty when moved from; its destructor closes it, which also ends every kernel lock taken through
/// it unless a forked child still has the descriptor (see `world::unlock`).
class file {
 public:
    file() noexcept = default;
    file(world& owner, int handle, unsigned generation) noexcept
        : world_(&owner), handle_(handle), generation_(generation) {}
    file(file&& other) noexcept
        : world_(std::exchange(other.world_, nullptr)),
          handle_(std::exchange(other.handle_, -1)),
          generation_(other.generation_) {}
    file& operator=(file&& other) noexcept {
        if (this != &other) {
            close();
            world_ = std::exchange(other.world_, nullptr);
            handle_ = std::exchange(other.handle_, -1);
            generation_ = other.generation_;
        }
        return *this;
    }
    ~file() { close(); }

    explicit operator bool() const noexcept { return world_ != nullptr; }
    [[nodiscard]] int handle() const noexcept { return handle_; }
    /// Which child of a fork, or the first process, it was opened in. In another one the number means nothing: the
    /// descriptor was closed, and may have been given to something else.
    [[nodiscard]] unsigned generation() const noexcept { return generation_; }
    void close() noexcept;

 private:
    world* world_ = nullptr;
    int handle_ = -1;
    unsigned generation_ = 0;
};

enum class file_kind : std::uint8_t { regular, directory, symlink, other };

/// What `stat` says of a file.
struct file_facts {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    std::uint64_t links = 0;
    std::uint64_t size = 0;
    std::int64_t modified_ns = 0;  ///< mtime, nanoseconds since the epoch, by the clock of the filesystem
    file_kind kind = file_kind::other;

    [[nodiscard]] bool same_inode(const file_facts& o) const noexcept {
        return device == o.device && inode == o.inode;
    }
};

/// Whether all who can reach a directory share this kernel.
enum class fs_class : std::uint8_t {
    local,  ///< One kernel: kernel locks are a witness, its clock is ours.
    shared  ///< Other hosts may be there too (NFS, SMB, FUSE, ...): caches lie, kernel locks prove nothing.
};

struct directory_facts {
    file_facts file;
    fs_class kind = fs_class::shared;
};

/// A file that was just made.
struct new_file {
    os::file file;
    file_facts facts;
};

enum class access : std::uint8_t { read, read_write };

/// The two bytes of a record that carry kernel locks.
enum class lock_byte : std::uint8_t {
    witness = 0,  ///< "The owner lives": the owner keeps it for as long as it owns.
    removal = 1   ///< "Its removal is at work": a reclaimer keeps it from its check to the removal.
};

/// Which kind of kernel lock carries the witness. `flock` has no bytes: both of `lock_byte` are one lock there.
enum class witness_kind : std::uint8_t { none, ofd, flock };

/// The answer to "may I have this lock?" and to "does anybody have it?"
enum class lock_state : std::uint8_t {
    free,     ///< Nobody has it; for `lock`: it is ours now.
    held,     ///< Somebody else has it.
    unknown,  ///< The system could not say.
};

/// A text that many records of one process have in common: its copies share it.
class shared_text {
 public:
    shared_text() noexcept = default;
    template <class Text>
        requires std::convertible_to<const Text&, std::string_view>
    explicit(false) shared_text(const Text& text) {
        const std::string_view all(text);
        if (!all.empty()) text_ = std::make_shared<const std::string>(all);
    }

    [[nodiscard]] std::string_view view() const noexcept { return text_ ? std::string_view(*text_) : std::string_view(); }
    [[nodiscard]] bool empty() const noexcept { return !text_; }
    friend bool operator==(const shared_text& a, const shared_text& b) noexcept {
        return a.text_ == b.text_ || a.view() == b.view();
    }

 private:
    std::shared_ptr<const std::string> text_;
};

/// Who this process is. `hostname` is what goes into a record.
struct identity {
    int pid = 0;
    std::string nodename;
    shared_text hostname;  ///< `nodename`, or `nodename/pidns-inode` outside of the initial PID namespace
    std::optional<std::uint64_t> start_time;  ///< ticks since boot; absent where it cannot be compared
    shared_text boot_id;                      ///< empty when unknown
    std::optional<std::uint64_t> pid_ns;      ///< inode of the PID namespace
};

/// What the kernel says of a pid in our PID namespace.
struct process_facts {
    enum class state : std::uint8_t { gone, exists, unknown } life = state::unknown;
    std::optional<std::uint64_t> start_time;  ///< absent when it could not be read or not be trusted
};

class world {
 public:
    using steady = std::chrono::steady_clock::time_point;

    virtual ~world() = default;

    // -- files; paths are absolute, symbolic links at the last component are never followed. `on` is the class of
    //    the filesystem: only files on a local one may be locked -------------------------------------------------
    /// A file without a name in `directory`; EOPNOTSUPP where the system or the filesystem has none.
    virtual call<result<new_file>> create_unnamed(const std::string& directory, unsigned mode, fs_class on) = 0;
    /// A new file at `path`; EEXIST when there is anything already.
    virtual call<result<new_file>> create(const std::string& path, unsigned mode, fs_class on) = 0;
    /// Never blocks, also not on a FIFO or a device. ELOOP for a symbolic link.
    virtual call<result<file>> open(const std::string& path, access how, fs_class on) = 0;
    virtual call<result<std::size_t>> read(const file& from, std::span<char> into) = 0;  ///< from offset 0
    /// All of `data` at offset 0 in one write; a short write is an error.
    virtual call<std::error_code> write(const file& to, std::string_view data) = 0;
    virtual call<result<file_facts>> facts(const file& of) = 0;
    virtual call<result<file_facts>> facts_at(const std::string& path) = 0;
    /// Sets the times of `of` to now and says what that was, by the clock of the filesystem.
    virtual call<result<std::int64_t>> touch(const file& of) = 0;
    virtual call<std::error_code> sync(const file& of) = 0;
    virtual call<std::error_code> sync_directory(const std::string& directory) = 0;
    /// Gives `of` the name `to`; `from` is its present name, or empty if it has none. EEXIST when `to` exists.
    virtual call<std::error_code> link(const file& of, const std::string& from, const std::string& to) = 0;
    /// Renames, never over an existing file: EEXIST; EINVAL where the system cannot promise that.
    virtual call<std::error_code> rename_exclusive(const std::string& from, const std::string& to) = 0;
    /// Renames to a name that only the caller knows.
    virtual call<std::error_code> rename(const std::string& from, const std::string& to) = 0;
    virtual call<std::error_code> unlink(const std::string& path) = 0;
    /// Whether `directory` has a name that begins with `prefix` for the file `of`.
    virtual call<bool> has_name(const std::string& directory, const std::string& prefix, const file_facts& of) = 0;
    /// The directory itself: the one call here that follows a symbolic link. ENOTDIR for anything else.
    virtual call<result<file_facts>> directory(const std::string& path) = 0;
    /// The same, and the class of its filesystem.
    virtual call<result<directory_facts>> classify(const std::string& directory) = 0;

    // -- kernel locks -----------------------------------------------------------------------------------------
    /// The kind that this system has.
    [[nodiscard]] virtual witness_kind system_witness() = 0;
    /// The kind that a new record is to carry: the same, or `none` when no more descriptors may be kept.
    [[nodiscard]] virtual witness_kind new_witness() = 0;
    /// Whether those who only wait may keep files open: they must not use up what owners need.
    [[nodiscard]] virtual bool may_keep_waiting_files() = 0;
    /// Takes the lock without waiting. `how` is the kind that the record names.
    virtual call<lock_state> lock(const file& on, lock_byte which, witness_kind how) = 0;
    /// Gives it back explicitly: a forked child may still have the descriptor, so closing is not enough.
    virtual call<std::error_code> unlock(const file& on, lock_byte which, witness_kind how) = 0;
    /// Asks without taking. Works on a descriptor that can only read.
    virtual call<lock_state> probe(const file& on, lock_byte which, witness_kind how) = 0;
    /// Shows the owner of a record that somebody waits for it, for as long as the descriptor is open: a shared lock on
    /// a third byte. Only politeness rests on it; nothing happens where the system has no locks on bytes.
    virtual void show_waiting(const file& on) = 0;
    /// Whether anybody shows that.
    [[nodiscard]] virtual bool is_waited_for(const file& of) = 0;

    // -- processes --------------------------------------------------------------------------------------------
    [[nodiscard]] virtual const identity& self() = 0;
    virtual call<process_facts> process(int pid) = 0;

    // -- clocks and chance ------------------------------------------------------------------------------------
    [[nodiscard]] virtual steady now() = 0;             ///< does not run backwards
    /// How long this machine has been suspended: what `now` does not count. Zero where the system does not say.
    [[nodiscard]] virtual steady::duration suspended() = 0;
    [[nodiscard]] virtual std::int64_t wall_ns() = 0;   ///< nanoseconds since the epoch
    /// Nanoseconds since the epoch, greater than `floor` and than every earlier answer in this process. Where `floor`
    /// is ahead of the clock, by chance: processes of other hosts may have our pid, and know the same floor.
    [[nodiscard]] virtual std::int64_t next_stamp(std::int64_t floor) = 0;
    [[nodiscard]] virtual std::uint32_t random() = 0;

    // -- what this process owns, or is about to ---------------------------------------------------------------
    /// By the stamp of the epoch, as `next_stamp` gave it.
    virtual void remember_epoch(std::int64_t stamp) = 0;
    virtual void forget_epoch(std::int64_t stamp) = 0;
    [[nodiscard]] virtual bool knows_epoch(std::int64_t stamp) = 0;

    virtual void close(int handle, unsigned generation) noexcept = 0;
};

inline void file::close() noexcept {
    if (world_ != nullptr) std::exchange(world_, nullptr)->close(std::exchange(handle_, -1), generation_);
}

}  // namespace fslock::os
