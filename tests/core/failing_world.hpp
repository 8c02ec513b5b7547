// A world in which looking at a path fails as the test says. All else is done by another world.
#pragma once

#include <string>
#include <system_error>

#include "os/world.hpp"

namespace support {

namespace os = fslock::os;

class failing_world final : public os::world {
 public:
    explicit failing_world(os::world& whole) : whole_(whole) {}

    std::error_code failure;  ///< of `open` and `facts_at`; none: they work

    os::call<os::result<os::file>> open(const std::string& path, os::access how, os::fs_class on) override {
        if (failure) return failure;
        return whole_.open(path, how, on);
    }
    os::call<os::result<os::file_facts>> facts_at(const std::string& path) override {
        if (failure) return failure;
        return whole_.facts_at(path);
    }

    os::call<os::result<os::new_file>> create_unnamed(const std::string& d, unsigned mode, os::fs_class on) override {
        return whole_.create_unnamed(d, mode, on);
    }
    os::call<os::result<os::new_file>> create(const std::string& path, unsigned mode, os::fs_class on) override {
        return whole_.create(path, mode, on);
    }
    os::call<os::result<std::size_t>> read(const os::file& f, std::span<char> into) override {
        return whole_.read(f, into);
    }
    os::call<std::error_code> write(const os::file& f, std::string_view data) override { return whole_.write(f, data); }
    os::call<os::result<os::file_facts>> facts(const os::file& f) override { return whole_.facts(f); }
    os::call<os::result<std::int64_t>> touch(const os::file& f) override { return whole_.touch(f); }
    os::call<std::error_code> sync(const os::file& f) override { return whole_.sync(f); }
    os::call<std::error_code> sync_directory(const std::string& d) override { return whole_.sync_directory(d); }
    os::call<std::error_code> link(const os::file& f, const std::string& from, const std::string& to) override {
        return whole_.link(f, from, to);
    }
    os::call<std::error_code> rename_exclusive(const std::string& from, const std::string& to) override {
        return whole_.rename_exclusive(from, to);
    }
    os::call<std::error_code> rename(const std::string& from, const std::string& to) override {
        return whole_.rename(from, to);
    }
    os::call<std::error_code> unlink(const std::string& path) override { return whole_.unlink(path); }
    os::call<bool> has_name(const std::string& d, const std::string& prefix, const os::file_facts& of) override {
        return whole_.has_name(d, prefix, of);
    }
    os::call<os::result<os::file_facts>> directory(const std::string& path) override { return whole_.directory(path); }
    os::call<os::result<os::directory_facts>> classify(const std::string& d) override { return whole_.classify(d); }
    os::witness_kind system_witness() override { return whole_.system_witness(); }
    os::witness_kind new_witness() override { return whole_.new_witness(); }
    bool may_keep_waiting_files() override { return whole_.may_keep_waiting_files(); }
    os::call<os::lock_state> lock(const os::file& f, os::lock_byte which, os::witness_kind how) override {
        return whole_.lock(f, which, how);
    }
    os::call<std::error_code> unlock(const os::file& f, os::lock_byte which, os::witness_kind how) override {
        return whole_.unlock(f, which, how);
    }
    os::call<os::lock_state> probe(const os::file& f, os::lock_byte which, os::witness_kind how) override {
        return whole_.probe(f, which, how);
    }
    void show_waiting(const os::file& f) override { whole_.show_waiting(f); }
    bool is_waited_for(const os::file& f) override { return whole_.is_waited_for(f); }
    const os::identity& self() override { return whole_.self(); }
    os::call<os::process_facts> process(int pid) override { return whole_.process(pid); }
    steady now() override { return whole_.now(); }
    steady::duration suspended() override { return whole_.suspended(); }
    std::int64_t wall_ns() override { return whole_.wall_ns(); }
    std::int64_t next_stamp(std::int64_t floor) override { return whole_.next_stamp(floor); }
    std::uint32_t random() override { return whole_.random(); }
    void remember_epoch(std::int64_t stamp) override { whole_.remember_epoch(stamp); }
    void forget_epoch(std::int64_t stamp) override { whole_.forget_epoch(stamp); }
    bool knows_epoch(std::int64_t stamp) override { return whole_.knows_epoch(stamp); }
    void close(int handle, unsigned generation) noexcept override { whole_.close(handle, generation); }

 private:
    os::world& whole_;
};

}  // namespace support
