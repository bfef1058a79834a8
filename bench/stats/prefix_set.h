// What an infinite cache would know: every prefix of every prompt so far, and of its answer. The best that any server
// can do in the same order of requests, which measured counts are compared with.
//
// Threading: none. Memory: eight bytes and a table entry per different prefix.
#pragma once

#include <cstddef>
#include <unordered_set>

#include "stats/tokens.h"

namespace coppice::bench {

class PrefixSet {
 public:
  // How many tokens of the prompt have to be computed: those behind the longest known prefix, and at least one, as
  // its logits are needed. The prompt is known from then on, and so are `n_answer` - 1 further tokens `answer`: the
  // last one of an answer is never evaluated.
  std::size_t add(const Tokens& prompt, std::int32_t answer, std::size_t n_answer);

 private:
  std::unordered_set<std::uint64_t> known_;  // digests of prefixes
};

}  // namespace coppice::bench
