#include "peers.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#ifdef HAVE_BOOST_INTERPROCESS
#include <boost/interprocess/sync/file_lock.hpp>
#endif
#ifdef HAVE_QT
#include <QLockFile>
#endif
#ifdef HAVE_LIBLOCKFILE
#include <lockfile.h>
#endif

#include "measure.hpp"
#include "polling_design.hpp"
#include "scripted_peer.hpp"

namespace bench {
namespace {

class flock_lock {
 public:
    explicit flock_lock(const std::filesystem::path& path)
        : file_(::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600)) {
        if (file_ < 0) fail(path);
    }
    flock_lock(const flock_lock&) = delete;
    flock_lock& operator=(const flock_lock&) = delete;
    ~flock_lock() { (void)::close(file_); }

    void take() const {
        if (::flock(file_, LOCK_EX) != 0) fail("flock");
    }
    void give() const { (void)::flock(file_, LOCK_UN); }

 private:
    const int file_;
};

[[maybe_unused]] peer without(const char* name, const char* package) {
    return {name, std::string("built without it (Debian: ") + package + ')'};
}

#ifdef HAVE_BOOST_INTERPROCESS
class boost_lock {
 public:
    explicit boost_lock(const std::filesystem::path& path) : file_(path), lock_(path.c_str()) {}
    void take() { lock_.lock(); }
    void give() { lock_.unlock(); }

 private:
    flock_lock file_;  // it wants one that exists
    boost::interprocess::file_lock lock_;
};

// It is fcntl(F_SETLKW), and that belongs to the process.
peer boost_interprocess() {
    return {"Boost.Interprocess file_lock", "", true, with_each<boost_lock>::make};
}
#else
peer boost_interprocess() {
    return without("Boost.Interprocess file_lock", "libboost-dev");
}
#endif

#ifdef HAVE_QT
class qt_lock {
 public:
    explicit qt_lock(const std::filesystem::path& path) : lock_(QString::fromStdString(path.native())) {}
    void take() {
        if (!lock_.lock()) throw std::runtime_error("QLockFile::lock");
    }
    void give() { lock_.unlock(); }

 private:
    QLockFile lock_;
};

peer qt() {
    return {"QLockFile", "", false, with_each<qt_lock>::make};
}
#else
peer qt() {
    return without("QLockFile", "qtbase5-dev");
}
#endif

#ifdef HAVE_LIBLOCKFILE
class liblockfile_lock {
 public:
    explicit liblockfile_lock(const std::filesystem::path& path) : path_(path) {}
    void take() const {
        constexpr int for_ever = 1'000'000;
        if (const int answer = ::lockfile_create(path_.c_str(), for_ever, L_PID); answer != 0)
            throw std::runtime_error("lockfile_create: " + std::to_string(answer));
    }
    void give() const { (void)::lockfile_remove(path_.c_str()); }

 private:
    const std::string path_;
};

// Its private files are named after the process.
peer liblockfile() {
    return {"liblockfile", "", true, with_each<liblockfile_lock>::make};
}
#else
peer liblockfile() {
    return without("liblockfile", "liblockfile-dev");
}
#endif

}  // namespace

const std::vector<peer>& all_peers() {
    static const std::string scripts = PEER_SCRIPTS;
    static const std::vector<peer> all = {
        {"fslock"},
        {"flock(2)", "", false, with_each<flock_lock>::make},
        boost_interprocess(),
        {"polling design", "", false, with_each<polling_lock>::make},
        qt(),
        liblockfile(),
        scripted_peer("Python filelock", scripts + "/with_filelock.py", {"python3", "/usr/bin/python3"}),
        scripted_peer("Node proper-lockfile", scripts + "/with_proper_lockfile.js", {"node", "nodejs"}),
    };
    return all;
}

}  // namespace bench
