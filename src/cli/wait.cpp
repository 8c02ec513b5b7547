// `fslock wait`: until nobody who lives has the lock. Looks, and takes nothing.
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>

#include <algorithm>

#include "commands.hpp"
#include "exits.hpp"
#include "fslock/fslock.hpp"
#include "notice.hpp"
#include "text.hpp"

namespace cli {
namespace {

constexpr std::chrono::milliseconds look_every{100};

class look_out {
 public:
    explicit look_out(const waiting_request& r) : r_(r), timer_(io_), notice_(io_, r.quiet) {
        if (r.timeout) until_ = std::chrono::steady_clock::now() + *r.timeout;
    }

    int go() {
        look();
        io_.run();
        return status_;
    }

 private:
    void look() {
        fslock::error_code ec;
        const auto info = fslock::inspect(r_.lock, ec);
        if (ec) return end_with(complain(r_.lock, ec));
        const bool free = !info || info->verdict == fslock::liveness::dead;
        if (free) return end_with(success);
        auto whom = r_.lock + ": waiting for " + (info->malformed ? "a damaged record" : fslock::to_string(info->owner));
        if (info->proof != fslock::proof::none) whom += std::string(" (") + fslock::to_string(info->proof) + ')';
        notice_.waiting_for(whom);
        const auto now = std::chrono::steady_clock::now();
        if (until_ && now >= *until_) return end_with(r_.conflict_status);
        timer_.expires_at(until_ ? std::min(now + look_every, *until_) : now + look_every);
        timer_.async_wait([this](std::error_code) { look(); });
    }

    void end_with(int status) {
        notice_.end();
        status_ = status;
    }

    const waiting_request& r_;
    asio::io_context io_{1};
    asio::steady_timer timer_;
    notice notice_;
    std::optional<std::chrono::steady_clock::time_point> until_;
    int status_ = success;
};

}  // namespace

int wait(const waiting_request& r) { return look_out(r).go(); }

}  // namespace cli
