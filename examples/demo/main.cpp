// Four processes contend for one lock while their owners are killed. With `--worker` this program is one of the
// processes; without, it starts them, kills some, and checks what they wrote.
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include "script.hpp"
#include "worker.hpp"

namespace {

/// Ends every process of the demo, whatever it hangs in, some time after all other limits have passed.
constexpr unsigned last_resort_s = 90;

class temporary_directory {
 public:
    temporary_directory() : path_((std::filesystem::temp_directory_path() / "fslock-demo.XXXXXX").string()) {
        if (::mkdtemp(path_.data()) == nullptr)
            throw std::system_error(errno, std::system_category(), "mkdtemp");
    }
    temporary_directory(const temporary_directory&) = delete;
    temporary_directory& operator=(const temporary_directory&) = delete;
    ~temporary_directory() {
        std::error_code ignored;
        (void)std::filesystem::remove_all(path_, ignored);
    }
    [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
    std::string path_;
};

void on_signal(int) {
    demo::script::interrupt();
}

/// Interrupted, or without a reader, the demo still ends its workers and removes its directory.
void catch_signals() {
    struct sigaction action {};
    action.sa_handler = on_signal;
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) (void)::sigaction(number, &action, nullptr);
    action.sa_handler = SIG_IGN;
    (void)::sigaction(SIGPIPE, &action, nullptr);
}

bool play(const char* program) {
    catch_signals();
    const temporary_directory directory;
    demo::script script(program, directory.path());
    script.play();
    return script.judge();
}

}  // namespace

int main(int argc, char** argv) {
    (void)::alarm(last_resort_s);
    if (argc == 4 && std::string_view(argv[1]) == "--worker") return demo::run_worker(*argv[2], argv[3]);
    if (argc != 1) {
        (void)std::fprintf(stderr, "usage: %s\n", argv[0]);
        return 2;
    }
    try {
        return play(argv[0]) ? 0 : 1;
    } catch (const std::exception& e) {
        (void)std::fprintf(stderr, "FAILED: %s\n", e.what());
        return 1;
    }
}
