// Comparing token runs.
#pragma once

#include <algorithm>
#include <cstring>
#include <span>

#include "base/ids.h"

namespace coppice::kv {

// How many leading tokens two runs have in common. In blocks, as memcmp compares many tokens at a time and a loop that
// looks for the first difference does not (7 times faster at 100,000 tokens: bench/prefix_tree_bench.cc).
inline TokenPos common_prefix(std::span<const Token> a, std::span<const Token> b) {
  constexpr std::size_t kBlock = 256;
  const std::size_t n = std::min(a.size(), b.size());
  std::size_t i = 0;
  while (i + kBlock <= n && std::memcmp(a.data() + i, b.data() + i, kBlock * sizeof(Token)) == 0) i += kBlock;
  while (i < n && a[i] == b[i]) ++i;
  return static_cast<TokenPos>(i);
}

}  // namespace coppice::kv
