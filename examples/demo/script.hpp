// What happens in the demo, and what is known so far.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "crew.hpp"
#include "ledger.hpp"
#include "timeline.hpp"

namespace demo {

class script {
 public:
    script(const std::string& program, std::filesystem::path directory);

    /// From the first worker to the exit of the last. Throws `failure`.
    void play();
    /// Checks the ledger and the directory, and prints what came out of it. True when all is well.
    [[nodiscard]] bool judge();

    /// For signal handlers: ends `play` with a failure.
    static void interrupt() noexcept;

 private:
    void hire(const std::string& why);
    void let_them_work(int turns, std::chrono::milliseconds at_least);
    message freeze_an_owner();
    [[nodiscard]] bool surely_owns(const message& m) const;
    void kill_an_owner();
    void stop_an_owner();
    void see_take_over(const message& victim);
    void dismiss();

    std::optional<message> next_until(steady until);
    message next();
    void note(const message& m);
    void must_be_alone(const message& m) const;
    void tell(const message& m);
    void tell_turn(const message& m);
    [[nodiscard]] std::string waiters() const;
    void judge_ledger();
    void judge_takeovers();
    void judge_directory();

    std::filesystem::path directory_;
    timeline out_;
    crew crew_;
    steady deadline_;
    char next_name_ = 'A';
    bool in_detail_ = true;            ///< tell every step, not only whose turn it was
    std::string waiting_;              ///< the workers known to wait
    std::optional<steady> killed_at_;  ///< an owner was killed and has no successor yet
    std::vector<std::chrono::steady_clock::duration> takeovers_;
    int kills_ = 0;
    reports reported_;
    std::vector<std::string> faults_;
};

}  // namespace demo
