#include "tier/chains.h"

#include <algorithm>

namespace coppice::tier {

std::vector<Chain> chains_of(const std::vector<CachedBlock>& blocks) {
  std::vector<std::uint64_t> n_chains(blocks.size());  // through each block
  for (std::size_t i = blocks.size(); i-- > 0;) {      // parents come first, so here last
    if (!blocks[i].problem.empty()) continue;
    n_chains[i] = std::max<std::uint64_t>(n_chains[i], 1);
    if (blocks[i].parent != CachedBlock::kNone) n_chains[blocks[i].parent] += n_chains[i];
  }
  std::vector<Chain> to(blocks.size());  // from the root to each block
  std::vector<bool> goes_on(blocks.size());
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (!blocks[i].problem.empty()) continue;
    Chain& chain = to[i];
    if (blocks[i].parent != CachedBlock::kNone) {
      chain = to[blocks[i].parent];
      goes_on[blocks[i].parent] = true;
    }
    chain.last = i;
    const auto n = static_cast<TokenPos>(blocks[i].row.block.tokens.size());
    chain.tokens += n;
    chain.bytes += blocks[i].row.record_bytes;
    if (n_chains[i] > 1) {
      chain.shared_tokens += n;
    } else {
      chain.own_bytes += blocks[i].row.record_bytes;
    }
  }
  std::vector<Chain> chains;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (blocks[i].problem.empty() && !goes_on[i]) chains.push_back(to[i]);
  }
  std::ranges::stable_sort(chains, std::ranges::greater(),
                           [&](const Chain& chain) { return blocks[chain.last].row.use.order; });
  return chains;
}

}  // namespace coppice::tier
