#include "listing.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "facts.hpp"
#include "retry.hpp"

namespace fslock::os {
namespace {

struct closing {
    void operator()(DIR* d) const noexcept { (void)::closedir(d); }
};

/// Not every filesystem says the kind with the name (readdir(3)), and not every system has a place for it.
file_kind kind_of(int directory, const dirent& e) {
#if defined(DT_UNKNOWN)
    if (e.d_type == DT_REG) return file_kind::regular;
    if (e.d_type == DT_DIR) return file_kind::directory;
    if (e.d_type == DT_LNK) return file_kind::symlink;
    if (e.d_type != DT_UNKNOWN) return file_kind::other;
#endif
    struct stat s {};
    if (::fstatat(directory, e.d_name, &s, AT_SYMLINK_NOFOLLOW) != 0) return file_kind::other;
    return facts_from(s).kind;
}

}  // namespace

result<listing> list_directory(const std::string& directory, std::size_t most, last_link what) {
    if (directory.find('\0') != std::string::npos) return std::error_code(EINVAL, std::system_category());
    const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK | (what == last_link::refuse ? O_NOFOLLOW : 0);
    const int fd = retry([&] { return ::open(directory.c_str(), flags); });
    if (fd < 0) return last_error();
    const std::unique_ptr<DIR, closing> all(::fdopendir(fd));
    if (!all) {
        const auto error = last_error();
        (void)::close(fd);
        return error;
    }
    listing found;
    struct stat s {};
    if (::fstat(fd, &s) != 0) return last_error();
    found.directory = facts_from(s);
    for (;;) {
        errno = 0;
        const dirent* const e = ::readdir(all.get());
        if (e == nullptr) break;
        const std::string name = e->d_name;
        if (name == "." || name == "..") continue;
        found.whole = found.entries.size() < most;
        if (!found.whole) break;
        found.entries.push_back({name, kind_of(fd, *e)});
    }
    if (errno != 0 && found.whole) return last_error();
    std::sort(found.entries.begin(), found.entries.end(),
              [](const auto& a, const auto& b) { return a.name < b.name; });
    return found;
}

}  // namespace fslock::os
