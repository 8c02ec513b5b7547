#include "task.hpp"

#include <array>
#include <new>

namespace fslock::core {
namespace {

constexpr std::size_t frame_bytes = 2048;  // the largest protocol frame of a release build is below this

/// Frames that were given back and wait for their next use by the same thread. Without a destructor, for which every use
/// would have to look whether the thread knows of it.
struct frame_store {
    std::array<void*, 8> frames;
    std::size_t count;
    bool closed;
};

#if defined(__ELF__)
[[gnu::tls_model("initial-exec")]]
#endif
constinit thread_local frame_store store{};

/// Returns the frames that wait when the thread ends.
struct last_of_the_thread {
    ~last_of_the_thread() {
        store.closed = true;
        while (store.count != 0) ::operator delete(store.frames[--store.count]);
    }
};

}  // namespace

void* allocate_frame(std::size_t bytes) {
    if (bytes > frame_bytes) return ::operator new(bytes);
    if (store.count != 0) return store.frames[--store.count];
    return ::operator new(frame_bytes);
}

void deallocate_frame(void* frame, std::size_t bytes) noexcept {
    if (bytes <= frame_bytes && !store.closed && store.count < store.frames.size()) {
        if (store.count == 0) {
            thread_local const last_of_the_thread registered;
            (void)registered;
        }
        store.frames[store.count++] = frame;
        return;
    }
    ::operator delete(frame);
}

}  // namespace fslock::core
