#include "polling_design.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <fstream>

#include "measure.hpp"

namespace bench {
namespace {

using namespace std::chrono_literals;

std::string next_number() {
    static std::atomic<int> number{0};
    return std::to_string(::getpid()) + '-' + std::to_string(now_ns()) + '-' + std::to_string(++number);
}

void sync_directory(const std::filesystem::path& path) {
    const int directory = ::open(path.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0 || ::fsync(directory) != 0) fail(path);
    (void)::close(directory);
}

/// Makes a synced file beside `path` and returns its name.
std::filesystem::path synced_temp(const std::filesystem::path& path, const std::string& text) {
    const std::filesystem::path temp = path.native() + ".tmp." + next_number();
    const int file = ::open(temp.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    if (file < 0 || ::write(file, text.data(), text.size()) < 0 || ::fsync(file) != 0) fail(temp);
    (void)::close(file);
    return temp;
}

bool created(const std::filesystem::path& path, const std::string& text) {
    const auto temp = synced_temp(path, text);
    const bool done = ::link(temp.c_str(), path.c_str()) == 0;
    if (done) sync_directory(path);
    (void)::unlink(temp.c_str());
    return done;
}

std::string text_of(const std::filesystem::path& path) {
    std::ifstream in(path);
    std::string line;
    std::getline(in, line);
    return line;
}

bool is_dead(const std::string& record) {
    constexpr std::string_view key = "{\"pid\":";
    if (!record.starts_with(key)) return false;
    return ::kill(std::stoi(record.substr(key.size())), 0) != 0 && errno == ESRCH;
}

}  // namespace

std::string polling_lock::record(std::int64_t heartbeat_ms) const {
    return text("{\"pid\":%d,\"hostname\":\"benchmark\",\"heartbeat_at_ms\":%013lld,\"writer_epoch\":\"%s\"}\n",
                static_cast<int>(::getpid()), static_cast<long long>(heartbeat_ms), epoch_.c_str());
}

bool polling_lock::claim() {
    epoch_ = next_number();
    return created(path_, record(now_ns() / 1'000'000));
}

/// Under a token, so that of many who find the owner dead one removes the record. Says whether it did.
bool polling_lock::removed_dead() {
    const auto judged = text_of(path_);
    if (!is_dead(judged)) return false;
    const std::filesystem::path token = path_.native() + ".reclaim";
    if (!created(token, record(0))) {
        if (is_dead(text_of(token))) (void)::unlink(token.c_str());
        return false;
    }
    const bool same = text_of(path_) == judged;
    if (same) (void)::unlink(path_.c_str());
    (void)::unlink(token.c_str());
    sync_directory(token);
    return same;
}

void polling_lock::take() {
    while (!claim())
        if (!removed_dead()) sleep_for(100ms);
    held_ = true;
    heart_ = std::thread([this] { keep_fresh(); });
}

void polling_lock::keep_fresh() {
    std::unique_lock lock(mutex_);
    while (!ends_.wait_for(lock, 5s, [this] { return !held_; })) {
        const auto temp = synced_temp(path_, record(now_ns() / 1'000'000));
        if (::rename(temp.c_str(), path_.c_str()) != 0) fail(path_);
        sync_directory(path_);
    }
}

void polling_lock::give() {
    {
        const std::lock_guard lock(mutex_);
        if (!held_) return;
        held_ = false;
    }
    ends_.notify_all();
    heart_.join();
    if (text_of(path_).find(epoch_) != std::string::npos) (void)::unlink(path_.c_str());
}

}  // namespace bench
