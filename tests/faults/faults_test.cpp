// Every call of every use of a lock fails in every way that is plausible: once, and for ever.
#include <boost/test/unit_test.hpp>

#include <map>
#include <sstream>

#include "in_memory.hpp"
#include "stage.hpp"

namespace {

using namespace faults;

struct totals {
    unsigned long runs = 0;
    unsigned long faults = 0;
    std::map<std::string, unsigned long> problems;  ///< and how often
    std::map<std::string, std::string> first;
};

const char* name_of(extent e) {
    return e == extent::once ? "once" : e == extent::same_for_ever ? "for ever" : "and everything after it";
}

std::string described(const plan& p, step what) {
    std::ostringstream text;
    text << "call " << p.at << " (" << faults::name_of(what) << ") fails with "
         << std::error_code(p.what.code, std::system_category()).message()
         << (p.what.how == effect::whole ? " though it happened" : p.what.how == effect::half ? " half way" : "") << ", "
         << name_of(p.how_long);
    return text.str();
}

struct result_of_run {
    std::string wrong;
    unsigned calls = 0;
    unsigned failed = 0;
    std::optional<step> hit;
};

result_of_run play(const ground& g, const scenario& s, const plan& p) {
    result_of_run r;
    stage there(g);
    there.descriptors = open_descriptors();
    s.set(there);
    faulty_world w(p);
    try {
        r.wrong = s.play(there, w);
        r.calls = w.calls();
        if (r.wrong.empty()) r.wrong = there.look_around(w);
    } catch (const endless&) {
        r.wrong = "calls without end";
    } catch (const std::exception& e) {
        r.wrong = std::string("thrown: ") + e.what();
    }
    r.failed = w.failed();
    r.hit = w.hit();
    return r;
}

void note(totals& t, const plan& p, const result_of_run& r) {
    ++t.runs;
    t.faults += r.failed;
    if (r.wrong.empty()) return;
    ++t.problems[r.wrong];
    t.first.try_emplace(r.wrong, r.hit ? described(p, *r.hit) : std::string("without a fault"));
}

/// Which kinds of calls there are is found out by failing each with whatever.
totals fail_every_call(const ground& g, const scenario& s) {
    totals t;
    note(t, {}, play(g, s, {}));
    for (unsigned at = 1;; ++at) {
        plan p{at, {EIO, effect::none}, extent::once};
        const auto probe = play(g, s, p);
        if (!probe.hit) return t;
        for (const auto& f : plausible(*probe.hit, g.kind)) {
            p.what = f;
            for (const auto e : {extent::once, extent::same_for_ever, extent::all_for_ever}) {
                if (e == extent::all_for_ever && (f.code != EIO || f.how != effect::none)) continue;
                p.how_long = e;
                note(t, p, play(g, s, p));
            }
        }
    }
}

}  // namespace

BOOST_AUTO_TEST_CASE(whatever_call_fails_there_is_a_clean_end_and_nothing_is_in_the_way) {
    (void)open_descriptors();
    unsigned long runs = 0;
    unsigned long injected = 0;
    for (const auto& g : grounds()) {
        for (const auto& s : scenarios()) {
            if (!s.possible(g)) continue;
            const auto t = fail_every_call(g, s);
            runs += t.runs;
            injected += t.faults;
            BOOST_TEST(t.faults > 0, s.name << " on " << g.name << ": nothing failed");
            for (const auto& [wrong, count] : t.problems)
                BOOST_ERROR(s.name << " on " << g.name << ": " << wrong << " (" << count << " runs, first: "
                                   << t.first.at(wrong) << ")");
        }
    }
    BOOST_TEST_MESSAGE(runs << " runs, " << injected << " faults");
}
