#include "base/byte_buffers.h"

#include <malloc.h>

#include <mutex>
#include <utility>

namespace coppice {
namespace {

// Smaller ones the allocator keeps by itself.
constexpr std::size_t kBytesMin = std::size_t{256} << 10;

struct Idle {
  std::mutex mutex;
  std::vector<std::byte> buffer;  // guarded by mutex
};

Idle& idle() {
  static Idle one;
  return one;
}

}  // namespace

std::vector<std::byte> take_buffer(std::size_t n) {
  std::vector<std::byte> bytes;
  if (n >= kBytesMin) {
    const std::lock_guard lock(idle().mutex);
    const std::size_t capacity = idle().buffer.capacity();
    if (capacity >= n && capacity - n <= n / 4) bytes = std::exchange(idle().buffer, {});
  }
  bytes.resize(n);
  return bytes;
}

void give_buffer(std::vector<std::byte> bytes) {
  if (bytes.capacity() < kBytesMin) return;
  const std::lock_guard lock(idle().mutex);
  std::swap(idle().buffer, bytes);
}

void keep_large_buffers_apart() {
#ifdef __GLIBC__
  ::mallopt(M_MMAP_THRESHOLD, static_cast<int>(kBytesMin));
#endif
}

}  // namespace coppice
