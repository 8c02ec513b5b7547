#include "crowd.hpp"

#include <algorithm>

namespace fslock::core {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t few = 4;  ///< need not stay away from each other
constexpr std::size_t most = 1024;
constexpr int watch_at_a_time = 2;
constexpr auto longest_rest = 1s;
constexpr auto remembered = 10s;
constexpr auto look_of_one = 100us;

}  // namespace

void crowd::saw(const record& owner, steady now) {
    const auto who = owner.pid_ns.value_or(0) << 32U ^ static_cast<std::uint64_t>(owner.pid);
    std::erase_if(owners_, [who](const sighting& s) { return s.who == who; });
    if (owners_.size() < most) owners_.push_back(sighting{who, now});
}

void crowd::took(int turns, steady::duration time) noexcept {
    const auto one = time / turns;
    const bool first = turn_ == steady::duration();
    turn_ = first ? one : (3 * turn_ + one) / 4;
    watching_ = first ? turns : (7 * watching_ + turns) / 8;
}

void crowd::was_too_cautious() noexcept {
    owners_.erase(owners_.begin(), owners_.begin() + static_cast<std::ptrdiff_t>(owners_.size() / 2));
}

bool crowd::is_one() const noexcept { return owners_.size() >= few; }

steady::duration crowd::rest(steady now) noexcept {
    const auto recent = std::ranges::find_if(owners_, [&](const sighting& s) { return now - s.when < remembered; });
    owners_.erase(owners_.begin(), recent);
    if (!is_one()) return {};
    // Who watches wins every so many turns. If more do than should, there are some whom we have not seen.
    const auto unseen = std::max(0, static_cast<int>(watching_) - watch_at_a_time);
    const auto others = static_cast<int>(owners_.size()) + unseen;
    return std::min<steady::duration>(turn_ * (others - watch_at_a_time), longest_rest);
}

steady::duration crowd::between_looks() const noexcept { return look_of_one * owners_.size(); }

}  // namespace fslock::core
