// The timer of a context, with handlers that come late.
#include <asio/any_io_executor.hpp>
#include <asio/io_context.hpp>
#include <boost/test/unit_test.hpp>
#include <functional>
#include <memory>
#include <vector>

#include "crafted.hpp"
#include "fslock/fslock.hpp"
#include "support/directory.hpp"
#include "support/run_until.hpp"

namespace {

using namespace support;
namespace asio = fslock::asio;
using fslock::error_code;
using fslock::lock_guard;

/// What a thread was about to run when it lost its processor.
struct late {
    bool keeps = false;  ///< whether what is to be run now is kept
    std::vector<std::function<void()>> kept;
};

/// An executor of an `io_context` whose threads are that unlucky.
class late_executor {
 public:
    late_executor(asio::any_io_executor inner, late& what) noexcept : inner_(std::move(inner)), late_(&what) {}

    template <class F>
    void execute(F f) const {
        if (!late_->keeps) {
            inner_.execute(std::move(f));
            return;
        }
        late_->kept.push_back([kept = std::make_shared<F>(std::move(f))] { std::move (*kept)(); });
    }
    [[nodiscard]] asio::execution_context& query(asio::execution::context_t) const noexcept {
        return asio::query(inner_, asio::execution::context);
    }
    [[nodiscard]] late_executor require(asio::execution::blocking_t::never_t never) const {
        return {asio::require(inner_, never), *late_};
    }
    friend bool operator==(const late_executor& a, const late_executor& b) noexcept { return a.inner_ == b.inner_; }
    friend bool operator!=(const late_executor& a, const late_executor& b) noexcept { return a.inner_ != b.inner_; }

 private:
    asio::any_io_executor inner_;
    late* late_;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(timers)

BOOST_AUTO_TEST_CASE(a_context_whose_timer_was_served_late_runs_dry) {
    const directory d;
    late what;
    asio::io_context io;
    const late_executor on_io(io.get_executor(), what);
    const auto acquired = [&](const char* name, const fslock::options& o) {
        lock_guard lock;
        fslock::async_acquire(on_io, d / name, o, [&](error_code, lock_guard got) { lock = std::move(got); });
        BOOST_TEST_REQUIRE(run_until(io, [&] { return static_cast<bool>(lock); }));
        return lock;
    };
    const auto poll = [&] {
        io.restart();
        (void)io.poll();
    };
    auto first = acquired("first", minutes());
    what.keeps = true;
    BOOST_TEST_REQUIRE(run_until(io, [&] { return !what.kept.empty(); }));
    what.keeps = false;
    first.release();
    poll();
    auto second = acquired("second", never_beats());
    poll();
    BOOST_TEST(!io.stopped());
    BOOST_TEST(what.kept.size() == 1U);
    what.kept.front()();
    second.release();
    poll();
    BOOST_TEST(io.stopped());
}

BOOST_AUTO_TEST_SUITE_END()
