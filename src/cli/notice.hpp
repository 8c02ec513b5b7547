// Telling people for whom we wait: after a second, once; a spinner where it can be wiped away again.
#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>

#include <string>

namespace cli {

/// Begins to count when it is made. Says nothing when it is quiet, or when the wait ends within a second.
class notice {
 public:
    notice(asio::io_context& io, bool quiet);
    ~notice() { end(); }
    notice(const notice&) = delete;
    notice& operator=(const notice&) = delete;

    /// For whom we wait, as far as it is known: the last word before the second is over counts, or the first after it.
    void waiting_for(std::string what);
    /// The wait is over.
    void end();

 private:
    void say_it();
    void spin();

    asio::steady_timer timer_;
    std::string what_;
    bool due_ = false;
    bool said_ = false;
    bool ended_;
    unsigned turn_ = 0;
};

}  // namespace cli
