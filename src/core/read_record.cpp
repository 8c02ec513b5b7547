#include "read_record.hpp"

#include <array>
#include <memory>
#include <string_view>

#include "system_code.hpp"

namespace fslock::core {
namespace {

using buffer = std::array<char, record_limit + 1>;

read_outcome could_not_open(std::error_code error) {
    read_outcome out;
    out.error = error;
    if (is(error, ENOENT)) {
        out.state = reading::absent;
    } else if (is(error, EIO) || is(error, ESTALE) || is(error, EAGAIN)) {  // EAGAIN: a lease is being called back
        out.state = reading::unsteady;
    } else if (is(error, ELOOP) || is(error, ENXIO) || is(error, ENODEV) || is(error, EISDIR)) {
        out.state = reading::seen;  // a symbolic link, a socket, a device or a directory: foreign
    }
    return out;
}

/// Two reads that agree. EAGAIN when they do not, even on a second try.
task<os::result<std::size_t>> read_twice(os::world& w, const os::file& from, buffer& text) {
    auto again = std::make_unique<buffer>();
    for (int tries = 0; tries < 4; ++tries) {
        const auto first = co_await w.read(from, text);
        if (!first) co_return first;
        const auto second = co_await w.read(from, *again);
        if (!second) co_return second;
        if (std::string_view(text.data(), *first) == std::string_view(again->data(), *second)) co_return first;
    }
    co_return system_code(EAGAIN);
}

}  // namespace

task<read_outcome> read_again(os::world& w, const os::file& file) {
    read_outcome out;
    const auto facts = co_await w.facts(file);
    if (!facts) {
        out.state = reading::unsteady;
        out.error = facts.error();
        co_return out;
    }
    out.facts = *facts;
    out.state = reading::seen;
    if (facts->kind != os::file_kind::regular || facts->size > record_limit) co_return out;
    const auto text = std::make_unique<buffer>();
    const auto size = co_await read_twice(w, file, *text);
    if (!size) {
        out.state = reading::unsteady;
        out.error = size.error();
        co_return out;
    }
    out.what = parse({text->data(), *size});
    co_return out;
}

task<read_outcome> read_record_at(os::world& w, const std::string& path, os::fs_class on, os::access how) {
    auto opened = co_await w.open(path, how, on);
    if (!opened) co_return could_not_open(opened.error());
    auto out = co_await read_again(w, *opened);
    out.file = std::move(*opened);
    co_return out;
}

}  // namespace fslock::core
