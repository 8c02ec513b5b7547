// A process dies right after each of its calls, in every use of a lock.
#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cerrno>

#include "stage.hpp"

namespace {

using namespace faults;

constexpr int came_to_its_end = 7;

/// Whether the child got to its end before the call number `last`.
bool die_after(unsigned last, const scenario& s, stage& there) {
    const pid_t pid = ::fork();
    if (pid < 0) throw std::runtime_error("fork");
    if (pid == 0) {
        faulty_world w;
        try {
            s.set(there);
            w.die_after(last);
            (void)s.play(there, w);
        } catch (...) {
            ::_exit(99);
        }
        ::_exit(came_to_its_end);
    }
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (!WIFEXITED(status)) throw std::runtime_error("the child crashed");
    if (WEXITSTATUS(status) == 99) throw std::runtime_error("the child threw");
    return WEXITSTATUS(status) == came_to_its_end;
}

bool is_temp(const std::string& name) { return name.starts_with(".x.tmp."); }

/// How long the dead may be in the way: no time where a witness or a pid proves their death, but for the settling of
/// tokens; a file that was created in place and never filled has its grace, and so has such a token.
std::chrono::milliseconds grace(const ground& g) {
    if (g.method == core::publishing::created) return 65s;
    return g.kind == os::fs_class::shared ? 5s : 500ms;
}

/// A token that is moved aside to be compared has a private name; where files have names from their beginning, there
/// may also be the record and the token in preparation.
int most_temps(const ground& g) { return g.method == core::publishing::unnamed ? 1 : 3; }

/// "" or what is wrong.
std::string look_around(const ground& g, stage& there) {
    faulty_world w;
    const auto began = w.now();
    const auto out = there.contend(w, 20min);
    if (out.how != core::ending::owned) return "the next one does not get the lock: " + out.error.message();
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(w.now() - began);
    if (auto wrong = there.look_at(out, w); !wrong.empty()) return "the next one: " + wrong;
    if (took > grace(g)) return "the next one waits for too long";
    int temps = 0;
    for (const auto& name : there.dir.names()) {
        if (is_temp(name)) ++temps;
        // A token beside a free lock is in nobody's way: who reclaims next, removes it.
        else if (there.dir / name != there.where.token_path()) return name + " is left behind";
    }
    return temps <= most_temps(g) ? std::string() : std::to_string(temps) + " temps are left behind";
}

unsigned die_after_every_call(const ground& g, const scenario& s) {
    for (unsigned last = 1;; ++last) {
        stage there(g);
        const bool ended = die_after(last, s, there);
        const auto wrong = look_around(g, there);
        BOOST_TEST(wrong.empty(), s.name << " on " << g.name << ", dead after call " << last << ": " << wrong);
        if (ended) return last - 1;
    }
}

}  // namespace

BOOST_AUTO_TEST_CASE(after_whatever_call_a_process_dies_the_next_one_gets_the_lock) {
    unsigned deaths = 0;
    for (const auto& g : grounds())
        for (const auto& s : scenarios())
            if (s.possible(g)) deaths += die_after_every_call(g, s);
    BOOST_TEST(deaths > 1000);
    BOOST_TEST_MESSAGE(deaths << " deaths");
}
