// The main of a fuzz target where there is no libFuzzer: every file of the directories that it is given, once.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "property.hpp"

int main(int count, char** names) {
    unsigned long inputs = 0;
    for (int i = 1; i < count; ++i) {
        for (const auto& entry : std::filesystem::directory_iterator(names[i])) {
            std::ifstream in(entry.path(), std::ios::binary);
            const std::vector<char> text(std::istreambuf_iterator<char>(in), {});
            // Of exactly that size, so that a sanitizer sees the first byte too many.
            const std::vector<std::uint8_t> exact(text.begin(), text.end());
            std::fprintf(stderr, "%s\n", entry.path().c_str());  // the last line names the one that failed
            (void)LLVMFuzzerTestOneInput(exact.data(), exact.size());
            ++inputs;
        }
    }
    std::printf("%lu passed, %d failed\n", inputs, inputs == 0 ? 1 : 0);
    return inputs == 0 ? 1 : 0;
}
