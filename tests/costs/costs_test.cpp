// What a cycle and a hand-over cost where that does not depend on the clock: system calls, allocations, instructions.
// A change that makes them dearer has to raise a ceiling here, and to say why.
#include <boost/test/unit_test.hpp>

#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <asio/version.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "support/directory.hpp"
#include "support/filesystem.hpp"

namespace {

namespace ut = boost::unit_test;
using support::directory;

constexpr int fewer = 100;
constexpr int more = 300;

/// The most that one cycle, or one hand-over, may cost.
struct ceiling {
    const char* what;
    double system_calls;
    double allocations;
    double instructions;  ///< of an optimised build by g++ 12 with Asio 1.22.1
};

constexpr ceiling ceilings[] = {{"uncontended", 11.5, 6.5, 19'000}, {"handover", 41, 48.5, 77'000}};

std::vector<std::string> command(const ceiling& c, const directory& d, int cycles) {
    return {CYCLES_PROGRAM, c.what, d.path(), std::to_string(cycles)};
}

void become(const std::vector<std::string>& words) {
    std::vector<char*> all;
    for (const auto& w : words) all.push_back(const_cast<char*>(w.c_str()));
    all.push_back(nullptr);
    (void)::execv(all[0], all.data());
    ::_exit(127);
}

/// What a program says on its standard output and error; it has to succeed.
std::string output_of(const std::vector<std::string>& words) {
    std::string line;
    for (const auto& w : words) line += "'" + w + "' ";
    const std::unique_ptr<FILE, int (*)(FILE*)> out(::popen((line + "2>&1").c_str(), "r"), ::pclose);
    BOOST_REQUIRE(out);
    std::string all;
    char part[256];
    while (std::fgets(part, sizeof part, out.get()) != nullptr) all += part;
    return all;
}

double allocations_of(const ceiling& c, int cycles) {
    const directory d;
    return std::stod(output_of(command(c, d, cycles)));
}

/// By ptrace(2). -1: not permitted.
double system_calls_of(const ceiling& c, int cycles) {
    const directory d;
    const auto words = command(c, d, cycles);
    const pid_t pid = ::fork();
    if (pid == 0) {
        if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(126);
        (void)::freopen("/dev/null", "w", stdout);
        become(words);
    }
    int status = 0;
    BOOST_REQUIRE(::waitpid(pid, &status, 0) == pid);
    if (WIFEXITED(status)) return -1;
    (void)::ptrace(PTRACE_SETOPTIONS, pid, nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
    constexpr int at_a_call = SIGTRAP | 0x80;  // PTRACE_O_TRACESYSGOOD
    long stops = 0;
    for (int signal = 0; !WIFEXITED(status);) {
        (void)::ptrace(PTRACE_SYSCALL, pid, nullptr, signal);
        BOOST_REQUIRE(::waitpid(pid, &status, 0) == pid);
        BOOST_REQUIRE(!WIFSIGNALED(status));
        const bool stopped = WIFSTOPPED(status);
        if (stopped && WSTOPSIG(status) == at_a_call) ++stops;
        signal = stopped && WSTOPSIG(status) != at_a_call && WSTOPSIG(status) != SIGTRAP ? WSTOPSIG(status) : 0;
    }
    BOOST_TEST(WEXITSTATUS(status) == 0);
    return static_cast<double>(stops) / 2;  // at its begin and at its end
}

/// By the callgrind tool of valgrind.
double instructions_of(const ceiling& c, int cycles) {
    const directory d;
    auto words = command(c, d, cycles);
    words.insert(words.begin(), {"valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"});
    const auto said = output_of(words);
    const std::string key = "Collected : ";
    const auto at = said.find(key);
    BOOST_REQUIRE_MESSAGE(at != std::string::npos, said);
    return std::stod(said.substr(at + key.size()));
}

template <class Count>
double of_one(const ceiling& c, Count count) {
    return (count(c, more) - count(c, fewer)) / (more - fewer);
}

boost::test_tools::assertion_result possible(const char* problem) {
    boost::test_tools::assertion_result r(problem == nullptr);
    if (problem != nullptr) r.message() << problem;
    return r;
}

boost::test_tools::assertion_result tracing(ut::test_unit_id) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return possible("a sanitizer makes calls of its own");
#else
    return possible(system_calls_of(ceilings[0], 1) < 0 ? "processes cannot be traced here (ptrace)" : nullptr);
#endif
}

boost::test_tools::assertion_result valgrind(ut::test_unit_id) {
#if !defined(__GNUC__) || defined(__clang__) || __GNUC__ != 12 || !defined(__OPTIMIZE__) || !defined(__x86_64__) || \
    ASIO_VERSION != 102201
    return possible("its ceilings are for x86-64, g++ 12, optimised, and Asio 1.22.1");
#else
    return possible(std::system("valgrind --version >/dev/null 2>&1") != 0 ? "there is no valgrind" : nullptr);
#endif
}

}  // namespace

BOOST_AUTO_TEST_SUITE(costs)

BOOST_AUTO_TEST_CASE(allocations, *ut::precondition(support::local_filesystem)) {
    for (const auto& c : ceilings) {
        const double one = of_one(c, allocations_of);
        BOOST_TEST_MESSAGE(c.what << ": " << one << " allocations");
        BOOST_TEST(one > 0);
        BOOST_TEST(one <= c.allocations, c.what << ": " << one << " allocations");
    }
}

BOOST_AUTO_TEST_CASE(system_calls, *ut::precondition(support::local_filesystem) * ut::precondition(tracing)) {
    for (const auto& c : ceilings) {
        const double one = of_one(c, system_calls_of);
        BOOST_TEST_MESSAGE(c.what << ": " << one << " system calls");
        BOOST_TEST(one >= 6);  // a lock cannot do without these
        BOOST_TEST(one <= c.system_calls, c.what << ": " << one << " system calls");
    }
}

BOOST_AUTO_TEST_CASE(instructions, *ut::precondition(support::local_filesystem) * ut::precondition(valgrind)) {
    for (const auto& c : ceilings) {
        const double one = of_one(c, instructions_of);
        BOOST_TEST_MESSAGE(c.what << ": " << one << " instructions");
        BOOST_TEST(one > 0);
        BOOST_TEST(one <= c.instructions, c.what << ": " << one << " instructions");
    }
}

BOOST_AUTO_TEST_SUITE_END()
