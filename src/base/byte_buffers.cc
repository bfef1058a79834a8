#include "base/byte_buffers.h"

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
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

// Pages of 2 MB where the system has them for those who ask: some three faults for a block of KV rather than a
// thousand.
void want_huge_pages([[maybe_unused]] std::vector<std::byte>& bytes) {
#ifdef MADV_HUGEPAGE
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = (reinterpret_cast<std::uintptr_t>(bytes.data()) + page - 1) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(bytes.data() + bytes.capacity()) / page * page;
  if (begin < end) (void)::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
#endif
}

}  // namespace

std::vector<std::byte> take_buffer(std::size_t n) {
  std::vector<std::byte> bytes;
  if (n >= kBytesMin) {
    const std::lock_guard lock(idle().mutex);
    const std::size_t capacity = idle().buffer.capacity();
    if (capacity >= n && capacity - n <= n / 4) bytes = std::exchange(idle().buffer, {});
  }
  if (n >= kBytesMin && bytes.capacity() < n) {
    bytes.reserve(n);
    want_huge_pages(bytes);
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
