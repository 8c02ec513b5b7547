// One of two files of one program that include all of the library. What is defined in a header and not inline is
// defined twice, and the program does not link.
#include <cstdio>
#include <fslock/fslock.hpp>

std::error_code from_another_unit(const fslock::options& o);

int main() {
    const fslock::options o;
    const bool same = fslock::check(o) == from_another_unit(o) &&
                      from_another_unit(o) != fslock::make_error_code(fslock::errc::bad_options);
    std::puts(same ? "1 passed, 0 failed" : "0 passed, 1 failed");
    return same ? 0 : 1;
}
