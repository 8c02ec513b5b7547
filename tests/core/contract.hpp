// The worlds that have to keep one and the same contract: the simulated one, and the real one in memory and on disk.
#pragma once

#include <boost/test/unit_test.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <memory>
#include <ostream>

#include "core/task.hpp"
#include "os/posix_world.hpp"
#include "support/child.hpp"
#include "support/directory.hpp"
#include "support/simulation.hpp"

namespace contract {

using namespace fslock;
using namespace fslock::os;
using support::sim_process;

template <class T>
core::task<T> wait_for(call<T> c) {
    co_return co_await c;
}

/// Two users of one directory: two processes of a simulated host, or two users of the one real world, which is the
/// same to kernel locks, as they belong to descriptors.
class subject {
 public:
    virtual ~subject() = default;
    virtual world& one() = 0;
    virtual world& two() = 0;
    virtual std::string at(const std::string& name) = 0;
    virtual void step() {}
    virtual void put_symlink(const std::string& name) = 0;
    virtual void put_directory(const std::string& name) = 0;
    /// Another process opens the file, takes both locks, and is killed: `held` in between.
    virtual void die_with_locks(const std::string& name, const std::function<void()>& held) = 0;

    template <class T>
    T get(call<T> c) {
        auto t = wait_for(std::move(c));
        t.resume();
        while (!t.done()) step();
        return t.result();
    }
    new_file make(const std::string& name, const std::string& text = "") {
        auto made = get(one().create(at(name), 0600, fs_class::local));
        BOOST_TEST_REQUIRE(!made.error());
        if (!text.empty()) BOOST_TEST(!get(one().write(made->file, text)));
        return std::move(*made);
    }
    file open(world& w, const std::string& name, os::access how = os::access::read) {
        auto opened = get(w.open(at(name), how, fs_class::local));
        BOOST_TEST_REQUIRE(!opened.error());
        return std::move(*opened);
    }
    std::string text_of(world& w, const file& f) {
        std::array<char, 100> text{};
        const auto n = get(w.read(f, text));
        BOOST_TEST_REQUIRE(!n.error());
        return {text.data(), *n};
    }
    file_facts facts(world& w, const file& f) {
        const auto found = get(w.facts(f));
        BOOST_TEST_REQUIRE(!found.error());
        return *found;
    }
    std::error_code facts_error(const std::string& name) { return get(one().facts_at(at(name))).error(); }
    lock_state lock(world& w, const file& f, lock_byte b) { return get(w.lock(f, b, w.system_witness())); }
    lock_state probe(world& w, const file& f, lock_byte b) { return get(w.probe(f, b, w.system_witness())); }
    bool has_bytes() { return one().system_witness() == witness_kind::ofd; }
};

class simulated final : public subject {
 public:
    world& one() override { return one_; }
    world& two() override { return two_; }
    std::string at(const std::string& name) override { return "/d/" + name; }
    void step() override {
        for (auto* p : {&one_, &two_})
            if (p->waits()) p->step();
    }
    void put_symlink(const std::string& name) override {
        disk_.inodes.at(disk_.put(at(name), "", 0)).kind = file_kind::symlink;
    }
    void put_directory(const std::string& name) override {
        disk_.inodes.at(disk_.put(at(name), "", 0)).kind = file_kind::directory;
    }
    void die_with_locks(const std::string& name, const std::function<void()>& held) override {
        const auto f = open(two_, name, os::access::read_write);
        BOOST_TEST((lock(two_, f, lock_byte::witness) == lock_state::free));
        held();
        two_.die();
    }

 private:
    support::sim_disk disk_ = [] {
        support::sim_disk d;
        d.exclusive_rename = true;
        return d;
    }();
    support::sim_host host_;
    sim_process one_{disk_, host_, 100};
    sim_process two_{disk_, host_, 101};
};

class real final : public subject {
 public:
    explicit real(const std::string& base) : path_(base + "/fslock-contract-XXXXXX") {
        BOOST_TEST_REQUIRE(::mkdtemp(path_.data()));
    }
    ~real() override { std::filesystem::remove_all(path_); }
    world& one() override { return this_world(); }
    world& two() override { return this_world(); }
    std::string at(const std::string& name) override { return path_ + '/' + name; }
    void put_symlink(const std::string& name) override { BOOST_TEST(::symlink("nowhere", at(name).c_str()) == 0); }
    void put_directory(const std::string& name) override { BOOST_TEST(::mkdir(at(name).c_str(), 0700) == 0); }
    void die_with_locks(const std::string& name, const std::function<void()>& held) override {
        support::child other([&](auto& parent) {
            const auto f = open(one(), name, os::access::read_write);
            parent.say(lock(one(), f, lock_byte::witness) == lock_state::free ? 'y' : 'n');
            (void)parent.hear();
        });
        BOOST_TEST(other.hear() == 'y');
        held();
        other.kill_and_reap();
    }

 private:
    std::string path_;
};

struct where {
    const char* name;
    const char* base;
};

inline std::ostream& operator<<(std::ostream& to, const where& w) { return to << w.name; }

inline const where everywhere[] = {{"simulated", nullptr}, {"in memory", "/dev/shm"}, {"on disk", "/tmp"}};

inline std::unique_ptr<subject> make(const where& w) {
    if (w.base == nullptr) return std::make_unique<simulated>();
    return std::make_unique<real>(::access(w.base, W_OK) == 0 ? w.base : "/tmp");
}

inline bool is(std::error_code e, int code) { return e == std::error_code(code, std::system_category()); }

}  // namespace contract
