#include "stats/prefix_set.h"

#include <algorithm>

namespace coppice::bench {

std::size_t PrefixSet::add(const Tokens& prompt, std::int32_t answer, std::size_t n_answer) {
  std::uint64_t digest = 0;
  std::size_t known = 0;
  const auto extend = [&](std::int32_t token) {
    digest = mix(digest, static_cast<std::uint64_t>(token) + 1);
    return known_.insert(digest).second;
  };
  bool all_known = true;
  for (const std::int32_t token : prompt) {
    if (extend(token)) all_known = false;
    if (all_known) ++known;
  }
  for (std::size_t i = 1; i < n_answer; ++i) extend(answer);
  return std::max<std::size_t>(prompt.size() - known, 1);
}

}  // namespace coppice::bench
