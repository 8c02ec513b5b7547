// Runs jobs under a lock, and stops in the middle of one when the lock is lost.
//
//   job_runner LOCK DIRECTORY SECONDS JOB...    each job takes SECONDS and leaves the file DIRECTORY/JOB
//   rm LOCK                                     while it runs: the lock is lost
//
// A job whose file is there is done, so that whoever takes over, or starts again, does not do it twice. Exits
// with 0 when all are done, with 75 (EX_TEMPFAIL: try again later) when the lock was lost for the second time.
#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fslock/fslock.hpp>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

namespace asio = fslock::asio;
using std::filesystem::path;

namespace {

struct plan {
    path lock;
    path directory;
    std::chrono::duration<double> duration{};
    std::vector<std::string> jobs;
};

void say(const std::string& text) {
    std::cout << text + '\n' << std::flush;
}

/// Throws `operation_aborted` where it is cancelled. Work that computes for long without a `co_await` has to
/// look at `lock.lost()` now and then instead.
asio::awaitable<void> work(std::chrono::duration<double> duration) {
    asio::steady_timer instead_of_work(co_await asio::this_coro::executor);
    instead_of_work.expires_after(std::chrono::duration_cast<std::chrono::nanoseconds>(duration));
    co_await instead_of_work.async_wait(asio::use_awaitable);
}

asio::awaitable<void> run_job(fslock::lock_guard& lock, const plan& p, const std::string& job) {
    const path done = p.directory / job;
    if (std::filesystem::exists(done)) {
        say(job + ": done before");
        co_return;
    }
    say(job + ": begins");
    try {
        co_await work(p.duration);
    } catch (const fslock::system_error& e) {
        if (e.code() == asio::error::operation_aborted) say(job + ": cancelled");
        throw;
    }
    // Each owner has a draft of its own; a stale one leaves it behind, and breaks nothing.
    const path draft = p.directory / (job + '.' + std::string(lock.writer_epoch()));
    std::ofstream(draft) << "done under epoch " << lock.writer_epoch() << '\n';
    const bool still_ours = co_await lock.async_verify();
    if (!still_ours) throw fslock::system_error(fslock::errc::lost);
    std::filesystem::rename(draft, done);
    say(job + ": done");
}

asio::awaitable<int> run_all(plan p) {
    constexpr int most_losses = 2;
    fslock::options o;
    o.label = "running " + std::to_string(p.jobs.size()) + " jobs";
    o.on_event = [](const fslock::event& e) { std::cerr << fslock::to_string(e) + '\n'; };
    auto jobs = [&p](fslock::lock_guard& lock) -> asio::awaitable<void> {
        for (const auto& job : p.jobs) co_await run_job(lock, p, job);
    };
    for (int losses = 1;; ++losses) {
        try {
            co_await fslock::async_with_lock(p.lock, o, jobs);
            co_return EXIT_SUCCESS;
        } catch (const fslock::system_error& e) {
            if (e.code() != fslock::errc::lost) throw;
            say(e.code().message());
        }
        if (losses == most_losses) co_return 75;
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 5) {
        std::cerr << "usage: job_runner LOCK DIRECTORY SECONDS JOB...\n";
        return 2;
    }
    const plan p{argv[1], argv[2], std::chrono::duration<double>(std::atof(argv[3])), {argv + 4, argv + argc}};
    int status = EXIT_FAILURE;
    asio::io_context io(1);
    asio::co_spawn(io, run_all(p), [&](const std::exception_ptr& error, int result) {
        try {
            if (error) std::rethrow_exception(error);
            status = result;
        } catch (const std::exception& e) {
            std::cerr << p.lock.string() << ": " << e.what() << '\n';
        }
    });
    io.run();
    return status;
}
