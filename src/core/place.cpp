#include "place.hpp"

#include <algorithm>
#include <charconv>

#include "fslock/error.hpp"
#include "system_code.hpp"

namespace fslock::core {
namespace {

constexpr std::size_t longest_name = 255;
constexpr std::string_view token_end = ".reclaim";
constexpr std::string_view temp_mark = ".tmp.";
// pid, nanoseconds and sequence of a temp, at their widest, with their dots.
constexpr std::size_t temp_digits = 10 + 1 + 19 + 1 + 10;

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool ends_without_case(std::string_view text, std::string_view end) {
    return text.size() >= end.size() &&
           std::equal(end.begin(), end.end(), text.end() - static_cast<std::ptrdiff_t>(end.size()),
                      [](char a, char b) { return a == lower(b); });
}

/// Takes `.<digits>` off the end of `text`.
bool drop_number(std::string_view& text) {
    const auto dot = text.rfind('.');
    if (dot == std::string_view::npos || dot + 1 == text.size()) return false;
    const auto digits = text.substr(dot + 1);
    if (!std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; })) return false;
    text = text.substr(0, dot);
    return true;
}

std::string beside(const place& p, std::string_view end) {
    std::string path;
    path.reserve(p.path().size() + 1 + end.size());
    path.append(p.path(), 0, p.lock.name_at);
    path += '.';
    path += p.lock.name();
    path += end;
    return path;
}

}  // namespace

bool is_reserved(std::string_view name) noexcept {
    if (name.size() < 2 || name[0] != '.') return false;
    if (ends_without_case(name, token_end) && name.size() > token_end.size() + 1) return true;
    std::string_view rest = name;
    if (!drop_number(rest) || !drop_number(rest) || !drop_number(rest)) return false;
    constexpr auto mark = temp_mark.substr(0, temp_mark.size() - 1);
    return ends_without_case(rest, mark) && rest.size() > mark.size() + 1;
}

side_name side_name_of(std::string_view name) {
    side_name none;
    if (name.size() < 2 || name[0] != '.' || name.starts_with(".nfs")) return none;
    if (name.ends_with(token_end) && name.size() > token_end.size() + 1)
        return {side::token, std::string(name.substr(1, name.size() - 1 - token_end.size())), 0};
    std::string_view rest = name;
    if (!drop_number(rest) || !drop_number(rest)) return none;
    const auto before_pid = rest;
    if (!drop_number(rest)) return none;
    constexpr auto mark = temp_mark.substr(0, temp_mark.size() - 1);
    if (!rest.ends_with(mark) || rest.size() <= mark.size() + 1) return none;
    const auto digits = before_pid.substr(rest.size() + 1);
    int pid = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), pid);
    if (error != std::errc{} || end != digits.data() + digits.size() || pid <= 0) return none;
    return {side::temp, std::string(rest.substr(1, rest.size() - 1 - mark.size())), pid};
}

std::error_code split(const std::filesystem::path& given, lock_name& into) {
    const auto& text = given.native();
    if (text.empty()) return system_code(ENOENT);
    if (text.find('\0') != std::string::npos) return system_code(EINVAL);
    const std::string_view last = std::string_view(text).substr(text.rfind('/') + 1);
    if (last.empty() || last == "." || last == "..") return system_code(EISDIR);
    if (is_reserved(last)) return errc::reserved_name;
    // A name must leave room for its token and its temps.
    if (last.size() + 1 + std::max(token_end.size(), temp_mark.size() + temp_digits) > longest_name)
        return system_code(ENAMETOOLONG);
    std::error_code error;
    if (given.is_absolute()) {
        into.full = text;
    } else {
        into.full = std::filesystem::absolute(given, error).native();
    }
    if (error) return error;
    into.name_at = into.full.rfind('/') + 1;
    return {};
}

std::string place::token_path() const { return beside(*this, token_end); }

std::string place::temp_prefix() const {
    std::string prefix(".");
    prefix += lock.name();
    prefix += temp_mark;
    return prefix;
}

/// The stamp is unique in this process; chance tells apart processes that have the same pid in other namespaces.
std::string place::private_path(os::world& w) const {
    std::string end(temp_mark);
    end += std::to_string(w.self().pid);
    end += '.';
    end += std::to_string(w.next_stamp(0));
    end += '.';
    end += std::to_string(w.random());
    return beside(*this, end);
}

}  // namespace fslock::core
