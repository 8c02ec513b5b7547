#include "interrupted.hpp"

#include <asio/co_spawn.hpp>
#include <asio/steady_timer.hpp>
#include <ostream>

#include "asking.hpp"

namespace interrupted {
namespace {

/// Where an operation completes with a `Result` in a coroutine.
template <class Result, class Start>
asio::awaitable<Result> await(std::shared_ptr<trace> t, asio::any_io_executor io, Start start) {
    auto initiation = [t, io, start](auto handler) mutable {
        begin<Result>(t, io, std::move(start), std::move(handler));
    };
    return asio::async_initiate<const asio::use_awaitable_t<>, void(Result)>(std::move(initiation),
                                                                             asio::use_awaitable);
}

/// An `error_code` is one value among others here, not an exception.
class ended {
 public:
    explicit ended(error_code ec) noexcept : error(ec) {}
    error_code error;
};

bool sanitized() { return !no_sanitizer(boost::unit_test::INV_TEST_UNIT_ID); }

std::size_t descriptors() { return sanitized() ? 0 : open_descriptors(); }

}  // namespace

thread_local int trace::initiating::depth = 0;

// ---- trace -----------------------------------------------------------------------------------------------------

trace::step& trace::new_step() {
    const std::lock_guard lock(mutex_);
    return steps_.emplace_back();
}

void trace::called(step& s) {
    ++calls_;
    if (++s.calls != 1) wrong("a handler was called twice");
    if (initiating::depth != 0) wrong("a handler was called inside its initiating function");
    if (!at_home()) wrong("a handler was called outside its executor");
}

void trace::wrong(const std::string& what) {
    const std::lock_guard lock(mutex_);
    problems_ += what + "; ";
}

void trace::cancel(asio::cancellation_type how) {
    std::vector<step*> begun;
    {
        const std::lock_guard lock(mutex_);
        for (auto& s : steps_) begun.push_back(&s);
    }
    cancelled_ = true;
    for (auto* const s : begun) {
        const std::lock_guard lock(s->beginning);
        s->signal.emit(how);
    }
}

std::string trace::problems(bool all_called) {
    for (const auto& s : steps_)
        if (all_called && s.calls == 0) wrong("a handler was not called");
    return problems_;
}

// ---- setting ---------------------------------------------------------------------------------------------------

void setting::know_directory() const { (void)fslock::try_acquire(dir / "known", patience); }

void setting::hold(const std::string& name) { held_.push_back(fslock::acquire(dir / name, minutes())); }

void setting::craft(const std::string& name, const std::string& text, bool must_stay) {
    write_file(dir / name, text);
    crafted_[name] = file{text, must_stay};
}

void setting::release_held() {
    const std::lock_guard lock(mutex_);
    held_.clear();
}

void setting::remove(const std::string& name) { std::filesystem::remove(dir / name); }

void setting::keep(lock_guard lock) {
    const std::lock_guard guard(mutex_);
    kept_.push_back(std::move(lock));
}

std::string setting::unexpected() const {
    for (const auto& name : dir.names()) {
        const auto at = crafted_.find(name);
        if (at == crafted_.end()) return name + " is left; ";
        if (read_file(dir / name) != at->second.text) return name + " is changed; ";
    }
    for (const auto& [name, file] : crafted_)
        if (file.must_stay && !std::filesystem::exists(dir / name)) return name + " is gone; ";
    return {};
}

std::string setting::left_behind() {
    std::string problems;
    for (auto& lock : kept_) {
        if (!lock.verify()) problems += "a kept lock is not usable; ";
        lock.release();
    }
    release_held();
    if (!eventually([&] { return unexpected().empty(); })) problems += unexpected();
    return problems;
}

// ---- stage -----------------------------------------------------------------------------------------------------

fslock::options stage::quick() const {
    auto o = minutes();
    o.heartbeat_interval = 1ms;
    o.poll_interval = 1ms;
    return o;
}

fslock::options stage::quick(fslock::event_kind kind, std::function<void()> what) const {
    auto o = quick();
    o.on_event = [t = told, kind, what = std::move(what)](const fslock::event& e) {
        if (!t->at_home()) t->wrong("an event was told outside its executor");
        if (e.kind == kind) what();
    };
    return o;
}

void stage::expect(bool condition, const char* what) const {
    if (!condition && !told->is_cancelled()) told->wrong(std::string("not so: ") + what);
}

void stage::check(got& g) const {
    if (g.error && g.lock) told->wrong("a lock and an error");
    if (g.error == asio::error::operation_aborted) expect(false, "an operation may be aborted");
    if (g.lock && !g.lock.verify()) told->wrong("a lock that is not usable");
}

asio::awaitable<got> stage::acquire(path p, fslock::options o) const {
    const stage me = *this;
    const auto start = [me, p, o](auto handler) { fslock::async_acquire(me.locks, p, o, std::move(handler)); };
    auto g = co_await await<got>(me.told, me.io, start);
    me.check(g);
    co_return g;
}

asio::awaitable<got> stage::try_acquire(path p, milliseconds limit, fslock::options o) const {
    const stage me = *this;
    const auto start = [me, p, limit, o](auto handler) {
        if (limit == 0ms) {
            fslock::async_try_acquire_once(me.locks, p, o, std::move(handler));
        } else {
            fslock::async_try_acquire(me.locks, p, limit, o, std::move(handler));
        }
    };
    auto g = co_await await<got>(me.told, me.io, start);
    me.check(g);
    co_return g;
}

/// REQUIRES: the caller keeps `lock` until the operation has begun, which it does when it is awaited.
asio::awaitable<said> stage::verify(lock_guard& lock) const {
    const auto start = [&lock](auto handler) { lock.async_verify(std::move(handler)); };
    return await<said>(told, io, start);
}

asio::awaitable<error_code> stage::release(lock_guard lock) const {
    const stage me = *this;
    const auto start = [&lock](auto handler) { lock.async_release(std::move(handler)); };
    const auto e = co_await await<ended>(me.told, me.io, start);
    co_return e.error;
}

asio::awaitable<void> stage::pause(milliseconds time) const {
    asio::steady_timer timer(io, time);
    co_await timer.async_wait(asio::use_awaitable);
}

// ---- scenarios and runs ----------------------------------------------------------------------------------------

std::ostream& operator<<(std::ostream& out, const scenario& s) { return out << s.name; }

pid_t living_process() {
    static const child lives(live_on);
    return lives.pid();
}

run::run(const scenario& s) : scenario_(s), trace_(std::make_shared<trace>(s.players)) {
    s.set(setting_);
    descriptors_ = descriptors();
}

void run::start(const asio::any_io_executor& io, const asio::any_io_executor& locks) {
    for (int i = 0; i < scenario_.players; ++i) {
        stage s(io, locks, setting_, trace_, i);
        auto ended = [t = trace_](const std::exception_ptr& e) {
            if (e) t->wrong("a player threw");
            t->player_ended();
        };
        asio::co_spawn(io, scenario_.play(std::move(s)), std::move(ended));
    }
}

std::string run::problems(bool whole) {
    std::string all;
    if (whole && !is_over()) all += "a player did not end; ";
    if (!eventually([&] { return trace_.use_count() == 1; })) all += "a handler is left; ";
    all += setting_.left_behind();
    if (!eventually([&] { return descriptors() <= descriptors_; })) all += "a descriptor is left; ";
    return all + trace_->problems(whole && scenario_.is_dry);
}

bool can_be_played(const scenario& s) {
    static const bool linux = static_cast<bool>(linux_facilities(boost::unit_test::INV_TEST_UNIT_ID));
    if (s.needs_linux && !linux) BOOST_TEST_MESSAGE(s.name << ": needs the facilities of Linux");
    return !s.needs_linux || linux;
}

bool run_some(asio::io_context& io, const run& r, int handlers) {
    for (int i = 0; i < handlers; ++i) {
        if (r.is_stuck()) return true;
        if (io.run_one_for(patience) == 0) return io.stopped();
    }
    return false;
}

}  // namespace interrupted
