// What is told of a wait, and who an owner is, for people.
#pragma once

#include "contender.hpp"

namespace fslock::core {

/// What was told of one wait already: each of these is told once.
struct told {
    bool waiting = false;
    bool stale = false;
    bool held_long = false;
    bool polling = false;
};

/// What a record says of its owner, for people.
[[nodiscard]] owner_info describe(const record& r, const os::identity& self);
/// After what silence an owner who lives is late.
[[nodiscard]] milliseconds lateness(const contender& c, const record& r);

/// Of an owner who lives, or may live.
void report_alive(contender& c, told& s, const finding& f);
/// Of a token that somebody else holds: once a minute, with the number of times that were left out.
void report_blocked(contender& c, const record& token_holder);
void report_reclaimed(contender& c, const finding& f);
/// Why the kernel cannot tell of the record's end.
void report_polling(contender& c, told& s, const record& r, std::error_code error);

}  // namespace fslock::core
