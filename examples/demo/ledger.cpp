#include "ledger.hpp"

#include <cerrno>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <system_error>
#include <utility>

namespace demo {
namespace {

std::string name_of(const mark& m) {
    return "entry " + std::to_string(m.number) + " by " + m.worker;
}

mark parse(const std::string& line) {
    mark m;
    std::string word;
    std::istringstream in(line);
    if (!(in >> word >> m.number >> m.worker >> m.epoch) || (word != "begin" && word != "end")) m.number = 0;
    m.begins = word == "begin";
    return m;
}

/// Reads the ledger from its beginning to its end and notes what may not be.
class checker {
 public:
    explicit checker(const reports& reported) : reported_(reported) {}

    void take(const mark& m) {
        if (m.number == 0) {
            fault("a line is damaged");
        } else if (m.begins) {
            begin(m);
        } else {
            end(m);
        }
    }

    finding finish() {
        if (open_) abandon("is never ended");
        for (const auto& [epoch, r] : reported_) {
            const std::string whose = "entry " + std::to_string(r.number) + ", reported by " + r.worker;
            if (r.number != 0 && begun_.count({epoch, r.number}) == 0) fault(whose + ", is lost");
            if (r.ended && ended_.count({epoch, r.number}) == 0) fault("the end of " + whose + ", is lost");
        }
        return std::move(found_);
    }

 private:
    using key = std::pair<std::string, int>;

    void fault(std::string text) { found_.faults.push_back(std::move(text)); }

    void begin(const mark& m) {
        if (open_) abandon("is interrupted by " + name_of(m));
        if (m.number != last_ + 1) fault(name_of(m) + " follows entry " + std::to_string(last_));
        const auto r = reported_.find(m.epoch);
        if (r == reported_.end() || r->second.number != m.number) fault(name_of(m) + " was reported by nobody");
        ++found_.entries;
        begun_.insert({m.epoch, m.number});
        last_ = m.number;
        open_ = m;
    }

    void end(const mark& m) {
        ended_.insert({m.epoch, m.number});
        if (!open_ || open_->epoch != m.epoch || open_->number != m.number) {
            fault(name_of(m) + " ends outside of its turn");
        } else {
            open_.reset();
        }
    }

    void abandon(const std::string& how) {
        const auto r = reported_.find(open_->epoch);
        ++found_.unfinished;
        if (r == reported_.end() || !r->second.killed) fault(name_of(*open_) + ", who was not killed, " + how);
        open_.reset();
    }

    const reports& reported_;
    finding found_;
    std::optional<mark> open_;
    int last_ = 0;
    std::set<key> begun_;
    std::set<key> ended_;
};

}  // namespace

void append(const std::filesystem::path& ledger, const mark& m) {
    std::ofstream out(ledger, std::ios::app);
    out << (m.begins ? "begin " : "end ") << m.number << ' ' << m.worker << ' ' << m.epoch << '\n'
        << std::flush;
    if (!out) throw std::system_error(errno, std::system_category(), "cannot write the ledger");
}

std::vector<mark> read(const std::filesystem::path& ledger) {
    std::vector<mark> marks;
    std::ifstream in(ledger);
    for (std::string line; std::getline(in, line);) marks.push_back(parse(line));
    return marks;
}

finding check(const std::vector<mark>& ledger, const reports& reported) {
    checker c(reported);
    for (const auto& m : ledger) c.take(m);
    return c.finish();
}

}  // namespace demo
