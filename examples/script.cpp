// A program that runs from top to bottom, without an event loop: counts how often it was run.
//
//   script LOCK SECONDS COUNTER      waits SECONDS at most, and adds one to the number in the file COUNTER
//
// Says for whom it waits, and who has the lock if it was not to be had. Exits with 0 when it has counted, with
// 75 (EX_TEMPFAIL: try again later) when the lock was not to be had or was lost, with 1 for anything else.
#include <cstdlib>
#include <filesystem>
#include <fslock/fslock.hpp>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>

namespace {

using std::filesystem::path;

constexpr int try_again_later = 75;

fslock::options settings() {
    fslock::options o;
    o.label = "counting";
    // Called on a thread of fslock, while this one is blocked.
    o.on_event = [](const fslock::event& e) { std::cerr << fslock::to_string(e) + '\n'; };
    return o;
}

void say_who_has(const path& lock) {
    const auto info = fslock::inspect(lock);
    if (!info) {
        std::cerr << lock.string() << ": not in time, and free by now\n";
    } else {
        std::cerr << lock.string() << ": not in time; held by " << fslock::to_string(info->owner) << " ("
                  << fslock::to_string(info->proof) << "), epoch " << info->owner.writer_epoch << '\n';
    }
}

long read_number(const path& file) {
    long n = 0;
    std::ifstream in(file);
    if (in && !(in >> n)) throw std::runtime_error(file.string() + ": no number in it");
    return n;
}

/// Readers see the old number or the new one, and so does whoever looks after a crash.
void count(fslock::lock_guard& lock, const path& counter) {
    const long n = read_number(counter) + 1;
    path draft = counter;
    draft += ".new";
    std::ofstream out(draft);
    out << n << '\n';
    out.close();
    if (!out) throw std::runtime_error(draft.string() + ": cannot be written");
    if (!lock.verify()) throw fslock::system_error(fslock::errc::lost, lock.path().string());
    std::filesystem::rename(draft, counter);
    std::cout << n << '\n';
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 4) {
        std::cerr << "usage: script LOCK SECONDS COUNTER\n";
        return 2;
    }
    const path lock_path = argv[1];
    const std::chrono::duration<double> patience(std::atof(argv[2]));
    try {
        fslock::lock_guard lock = fslock::try_acquire(lock_path, patience, settings());
        if (!lock) {
            say_who_has(lock_path);
            return try_again_later;
        }
        count(lock, argv[3]);
        lock.release();  // the destructor would not say that it failed
        return EXIT_SUCCESS;
    } catch (const fslock::system_error& e) {
        std::cerr << e.what() << '\n';
        return e.code() == fslock::errc::lost ? try_again_later : EXIT_FAILURE;
    } catch (const std::exception& e) {
        std::cerr << e.what() << '\n';
        return EXIT_FAILURE;
    }
}
