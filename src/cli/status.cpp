// `fslock status`: who has a lock, whether the owner lives, and what shows it.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

#include "commands.hpp"
#include "exits.hpp"
#include "fslock/fslock.hpp"
#include "text.hpp"

namespace cli {
namespace {

using fslock::liveness;
using fslock::lock_info;

/// What is at a path: nothing, or what an inspection says.
struct found {
    std::string path;
    std::optional<lock_info> lock;
};

const char* state_of(const found& f) {
    if (!f.lock) return "free";
    switch (f.lock->verdict) {
        case liveness::alive: return "held";
        case liveness::dead: return "dead";
        case liveness::being_reclaimed: return "being reclaimed";
        case liveness::unknown: break;
    }
    return "unknown";
}

bool is_dead(const found& f) {
    return f.lock && (f.lock->verdict == liveness::dead || f.lock->verdict == liveness::being_reclaimed);
}

/// The command line of the owner, where its pid means something here and it lives.
std::string command_of(const lock_info& info) {
    if (!info.known_process || info.verdict != liveness::alive) return {};
    std::ifstream in("/proc/" + std::to_string(info.owner.pid) + "/cmdline", std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(in), {}};
    while (!text.empty() && text.back() == '\0') text.pop_back();
    for (auto& c : text)
        if (c == '\0') c = ' ';
    return text;
}

std::string proof_of(const lock_info& info) {
    return info.proof == fslock::proof::none ? "neither life nor death is proved yet" : to_string(info.proof);
}

void line(const char* name, const std::string& value) {
    if (value.empty()) return;
    std::string text = "  ";
    text += name;
    text.resize(12, ' ');
    std::cout << text << printable(value) << '\n';
}

/// Since a moment by the owner's clock, which may be ahead of ours.
std::string since(std::chrono::system_clock::time_point then) {
    const auto passed = std::chrono::system_clock::now() - then;
    return duration_text(std::max(std::chrono::duration_cast<std::chrono::milliseconds>(passed),
                                  std::chrono::milliseconds{0}));
}

void print(const found& f, const painter& colours) {
    const bool dead = is_dead(f);
    const auto c = !f.lock ? colour::good : dead ? colour::bad : colour::none;
    std::cout << printable(f.path) << ": " << colours.paint(c, state_of(f));
    if (!f.lock) {
        std::cout << '\n';
        return;
    }
    const auto& info = *f.lock;
    std::cout << colours.paint(colour::quiet, " (" + proof_of(info) + ')') << '\n';
    if (info.malformed) {
        line("record", "damaged; it goes when nobody completes it");
        return;
    }
    line("owner", "pid " + std::to_string(info.owner.pid) + " on " + info.owner.hostname);
    line("command", command_of(info));
    line("label", info.owner.label);
    line("held for", duration_text(info.age));
    line("heartbeat", since(info.owner.last_heartbeat) + " ago");
    line("epoch", info.owner.writer_epoch);
}

long long unix_ms(std::chrono::system_clock::time_point t) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(t.time_since_epoch()).count();
}

std::string json_of(const found& f) {
    std::string out = "{\"path\":" + json_string(f.path) + ",\"state\":" + json_string(state_of(f));
    if (!f.lock) return out + '}';
    const auto& info = *f.lock;
    out += ",\"proof\":" + json_string(to_string(info.proof));
    out += std::string(",\"damaged\":") + (info.malformed ? "true" : "false");
    if (info.malformed) return out + '}';
    out += ",\"pid\":" + std::to_string(info.owner.pid);
    out += ",\"hostname\":" + json_string(info.owner.hostname);
    out += ",\"command\":" + json_string(command_of(info));
    out += ",\"label\":" + json_string(info.owner.label);
    out += ",\"epoch\":" + json_string(info.owner.writer_epoch);
    out += ",\"acquired_ms\":" + std::to_string(unix_ms(info.owner.acquired));
    out += ",\"heartbeat_ms\":" + std::to_string(unix_ms(info.owner.last_heartbeat));
    return out + ",\"age_ms\":" + std::to_string(info.age.count()) + '}';
}

class gathering {
 public:
    void look_at(const std::string& path) {
        fslock::error_code ec;
        if (std::filesystem::is_directory(path, ec)) {
            look_into(path);
            return;
        }
        auto info = fslock::inspect(path, ec);
        if (ec) {
            note_error(path, ec);
        } else {
            all_.push_back({path, std::move(info)});
        }
    }

    void print_all(bool json) const {
        if (json) {
            std::cout << '[';
            for (std::size_t i = 0; i < all_.size(); ++i) std::cout << (i == 0 ? "" : ",\n ") << json_of(all_[i]);
            std::cout << "]\n";
            return;
        }
        const painter colours(STDOUT_FILENO);
        for (const auto& f : all_) print(f, colours);
    }

    /// The worst of all: an error, then held, then dead.
    [[nodiscard]] int status() const {
        if (error_ != 0) return error_;
        int worst = success;
        for (const auto& f : all_) {
            if (is_dead(f) && worst == success) worst = dead_owner;
            if (f.lock && !is_dead(f)) worst = conflict;
        }
        return worst;
    }

 private:
    void look_into(const std::string& directory) {
        fslock::error_code ec;
        for (auto& info : fslock::list_locks(directory, ec)) {
            const auto path = (std::filesystem::path(directory) / info.path.filename()).string();
            if (info.error) {
                note_error(path, info.error);
            } else {
                all_.push_back({path, std::move(info)});
            }
        }
        if (ec) note_error(directory, ec);
    }

    void note_error(const std::string& path, std::error_code ec) {
        const int status = complain(path, ec);
        if (error_ == 0) error_ = status;
    }

    std::vector<found> all_;
    int error_ = 0;
};

}  // namespace

int status(const status_request& r) {
    gathering g;
    for (const auto& path : r.paths) g.look_at(path);
    g.print_all(r.json);
    return g.status();
}

}  // namespace cli
