// Large buffers, used again. One that comes fresh from the system costs a page fault for each 4 KB and is zeroed, which
// takes longer than the copy that it is made for; blocks of KV are all of one size, and one leaves as the next one
// comes. One buffer is kept, so that memory exceeds what its users hold by that and no more.
// Threading: thread-safe.
#pragma once

#include <cstddef>
#include <vector>

namespace coppice {

std::vector<std::byte> take_buffer(std::size_t n);  // n bytes, whatever they are
void give_buffer(std::vector<std::byte> bytes);     // for the next take_buffer()

}  // namespace coppice
