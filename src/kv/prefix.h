// Comparing token runs.
#pragma once

#include <algorithm>
#include <span>

#include "base/ids.h"

namespace coppice::kv {

// How many leading tokens two runs have in common.
inline TokenPos common_prefix(std::span<const Token> a, std::span<const Token> b) {
  const std::size_t n = std::min(a.size(), b.size());
  const auto end = std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(n), b.begin()).first;
  return static_cast<TokenPos>(end - a.begin());
}

}  // namespace coppice::kv
