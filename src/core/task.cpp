#include "task.hpp"

#include <array>
#include <new>

namespace fslock::core {
namespace {

constexpr std::size_t frame_bytes = 2048;  // the largest protocol frame of a release build is below this

/// Frames that were given back and wait for their next use by the same thread. Zero-initialised and without a
/// destructor's order to care for: the frames are returned when the thread ends.
struct frame_store {
    std::array<void*, 8> frames{};
    std::size_t count = 0;
    bool closed = false;

    ~frame_store() {
        closed = true;
        while (count != 0) ::operator delete(frames[--count]);
    }
};

thread_local frame_store store;

}  // namespace

void* allocate_frame(std::size_t bytes) {
    if (bytes > frame_bytes) return ::operator new(bytes);
    if (store.count != 0) return store.frames[--store.count];
    return ::operator new(frame_bytes);
}

void deallocate_frame(void* frame, std::size_t bytes) noexcept {
    if (bytes <= frame_bytes && !store.closed && store.count < store.frames.size()) {
        store.frames[store.count++] = frame;
        return;
    }
    ::operator delete(frame);
}

}  // namespace fslock::core
