// Large buffers, used again. One that comes fresh from the system costs a page fault for each 4 KB and is zeroed, which
// takes longer than the copy that it is made for; blocks of KV are all of one size, and one leaves as the next one
// comes. One buffer is kept, so that memory exceeds what its users hold by that and no more; all others go back to the
// system, if the program says so when it begins.
// Threading: thread-safe.
#pragma once

#include <cstddef>
#include <vector>

namespace coppice {

std::vector<std::byte> take_buffer(std::size_t n);  // n bytes, whatever they are
void give_buffer(std::vector<std::byte> bytes);     // for the next take_buffer()

// From now on the allocator takes everything of a buffer's size from the system and gives it back to it. Otherwise
// buffers leave holes in its heap, which can take a third of what they took themselves. For main(); does nothing where
// the C library has no such choice.
void keep_large_buffers_apart();

}  // namespace coppice
