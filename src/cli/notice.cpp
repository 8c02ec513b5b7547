#include "notice.hpp"

#include <unistd.h>

#include <cstdio>

#include "exits.hpp"
#include "text.hpp"

namespace cli {
namespace {

constexpr std::chrono::seconds patience{1};
constexpr std::chrono::milliseconds spin_every{100};

}  // namespace

notice::notice(asio::io_context& io, bool quiet) : timer_(io), ended_(quiet) {
    if (quiet) return;
    timer_.expires_after(patience);
    timer_.async_wait([this](std::error_code aborted) {
        if (aborted || ended_) return;
        due_ = true;
        say_it();
    });
}

void notice::waiting_for(std::string what) {
    if (said_) return;
    what_ = std::move(what);
    if (due_ && !ended_) say_it();
}

void notice::say_it() {
    if (what_.empty() || said_) return;
    said_ = true;
    say(what_);
    if (is_terminal(STDERR_FILENO)) spin();
}

void notice::spin() {
    constexpr char hands[] = {'|', '/', '-', '\\'};
    std::fprintf(stderr, "\r%c", hands[turn_++ % sizeof hands]);
    timer_.expires_after(spin_every);
    timer_.async_wait([this](std::error_code aborted) {
        if (!aborted && !ended_) spin();
    });
}

void notice::end() {
    if (ended_) return;
    ended_ = true;
    timer_.cancel();
    if (turn_ != 0) std::fputs("\r \r", stderr);
}

}  // namespace cli
