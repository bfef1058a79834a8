#include "base/utf8.h"

#include <algorithm>

namespace coppice {
namespace {

// Bytes of the character that begins with `lead`; 0 for a byte that begins none.
std::size_t character_bytes(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return 2;
  if (lead >= 0xE0 && lead <= 0xEF) return 3;
  if (lead >= 0xF0 && lead <= 0xF4) return 4;
  return 0;
}

}  // namespace

std::size_t incomplete_utf8_tail(std::string_view text) {
  const std::size_t reach = std::min<std::size_t>(3, text.size());
  for (std::size_t back = 1; back <= reach; ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if ((byte & 0xC0U) == 0x80) continue;  // a continuation: its lead is further left
    return character_bytes(byte) > back ? back : 0;
  }
  return 0;
}

}  // namespace coppice
