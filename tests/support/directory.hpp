// A directory of its own for every test case, and simple looks at files.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

namespace support {

/// Removed at the end, with all that is in it. Under `$FSLOCK_TEST_DIR`, or /tmp.
class directory {
 public:
    directory() {
        const char* const base = std::getenv("FSLOCK_TEST_DIR");
        auto pattern = std::filesystem::path(base != nullptr ? base : "/tmp") / "fslock-test-XXXXXX";
        std::string name = pattern.native();
        if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp " + name);
        path_ = name;
    }
    directory(const directory&) = delete;
    directory& operator=(const directory&) = delete;
    ~directory() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }

    [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
    [[nodiscard]] std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

    /// The names of all that is in it, sorted.
    [[nodiscard]] std::vector<std::string> names() const {
        std::vector<std::string> all;
        for (const auto& e : std::filesystem::directory_iterator(path_)) all.push_back(e.path().filename().native());
        std::sort(all.begin(), all.end());
        return all;
    }
    [[nodiscard]] bool empty() const { return names().empty(); }

 private:
    std::filesystem::path path_;
};

inline std::string read_file(const std::filesystem::path& p) {
    std::ifstream in(p, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

inline void write_file(const std::filesystem::path& p, const std::string& text) {
    std::ofstream out(p, std::ios::binary | std::ios::trunc);
    out << text;
    out.close();
    if (!out) throw std::runtime_error("write " + p.native());
}

/// Sets the mtime of `p` to `ago` before now.
template <class Duration>
void age_file(const std::filesystem::path& p, Duration ago) {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(ago).count();
    const timespec times[2] = {{now.tv_sec - seconds, now.tv_nsec}, {now.tv_sec - seconds, now.tv_nsec}};
    if (::utimensat(AT_FDCWD, p.c_str(), times, AT_SYMLINK_NOFOLLOW) != 0)
        throw std::runtime_error("utimensat " + p.native());
}

}  // namespace support
