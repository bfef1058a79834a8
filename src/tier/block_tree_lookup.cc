// Comparing tokens: which blocks a prompt begins with, and which blocks make others superfluous.
#include <algorithm>
#include <cassert>

#include "kv/prefix.h"
#include "tier/block_tree.h"

namespace coppice::tier {
namespace {

bool tokens_before(std::span<const Token> a, std::span<const Token> b) {
  const auto common = static_cast<std::size_t>(kv::common_prefix(a, b));
  if (common == b.size()) return false;
  return common == a.size() || a[common] < b[common];
}

// The longest block of this kind that `tokens` begin with. Every such block sorts before `tokens` or is equal; if the
// last one that does so is none, what it has in common with `tokens` still bounds the ones that are.
Entry* longest_whole(const Children& children, std::span<const Token> tokens, BlockKind kind) {
  while (!tokens.empty()) {
    auto after = children.upper_bound(tokens);
    if (after == children.begin()) return nullptr;
    Entry* before = *--after;
    auto common = static_cast<std::size_t>(kv::common_prefix(before->tokens, tokens));
    if (common == before->tokens.size()) {
      if (kind_of(before->id) == kind) return before;
      // A checkpoint stands behind the cells with the same tokens, so there is none; cells may stand before it.
      if (kind == BlockKind::cells && after != children.begin() && (*std::prev(after))->tokens == before->tokens) {
        return *std::prev(after);
      }
      --common;
    }
    tokens = tokens.first(common);
  }
  return nullptr;
}

// Without the disk.
bool near(const Entry& entry) { return entry.host == HostState::held || entry.in_cells > 0; }

// The full block of cells with exactly these tokens.
Entry* full_cells(const Children& children, std::span<const Token> tokens) {
  const auto first = children.lower_bound(tokens);
  const bool equal = first != children.end() && std::ranges::equal((*first)->tokens, tokens);
  return equal && !(*first)->is_checkpoint() ? *first : nullptr;
}

// The block with the longest beginning in common with `tokens`: a neighbour of where `tokens` would stand. REQUIRES:
// there are no checkpoints among them.
Entry* longest_common(const Children& children, std::span<const Token> tokens) {
  Entry* best = nullptr;
  TokenPos best_common = 0;
  const auto consider = [&](Entry* entry) {
    const TokenPos common = kv::common_prefix(entry->tokens, tokens);
    if (common > best_common) {
      best = entry;
      best_common = common;
    }
  };
  const auto after = children.lower_bound(tokens);
  if (after != children.begin()) consider(*std::prev(after));
  if (after != children.end()) consider(*after);
  if (best == nullptr) return nullptr;
  // Of those with as much in common, one that is used in whole: it has the fewest bytes.
  Entry* whole = longest_whole(children, tokens, BlockKind::cells);
  return whole != nullptr && static_cast<TokenPos>(whole->tokens.size()) == best_common ? whole : best;
}

}  // namespace

bool ByTokens::operator()(const Entry* a, const Entry* b) const {
  return a->tokens == b->tokens ? a->is_checkpoint() < b->is_checkpoint() : tokens_before(a->tokens, b->tokens);
}
bool ByTokens::operator()(const Entry* a, std::span<const Token> b) const { return tokens_before(a->tokens, b); }
bool ByTokens::operator()(std::span<const Token> a, const Entry* b) const { return tokens_before(a, b->tokens); }

Found BlockTree::find(const BlockId& root, std::span<const Token> prompt, BlockKind last) const {
  return last == BlockKind::cells ? find_cells(root, prompt) : find_checkpoint(root, prompt);
}

Found BlockTree::find_cells(const BlockId& root, std::span<const Token> prompt) const {
  Found found;
  bool in_host = true;
  const Children* children = children_of(root);
  while (children != nullptr && !prompt.empty()) {
    const Entry* next = longest_common(*children, prompt);
    if (next == nullptr) break;
    found.last_usable = kv::common_prefix(next->tokens, prompt);
    found.blocks.push_back(next->id);
    found.tokens += found.last_usable;
    in_host = in_host && near(*next);
    if (in_host) found.tokens_in_host = found.tokens;
    if (found.last_usable < block_tokens_) break;
    prompt = prompt.subspan(static_cast<std::size_t>(found.last_usable));
    children = &next->children;
  }
  return found;
}

// visit(children, rest) for every place on the way of `tokens` where blocks go on, from the root on: full blocks of
// cells lie between them.
template <class F>
void BlockTree::walk(const BlockId& root, std::span<const Token> tokens, F&& visit) const {
  const Children* children = children_of(root);
  const auto n = static_cast<std::size_t>(block_tokens_);
  while (children != nullptr && !tokens.empty()) {
    const Entry* next = tokens.size() < n ? nullptr : full_cells(*children, tokens.first(n));
    visit(*children, tokens, next);
    if (next == nullptr) break;
    tokens = tokens.subspan(n);
    children = &next->children;
  }
}

// The longest chain that ends in a checkpoint: the last one on the way.
Found BlockTree::find_checkpoint(const BlockId& root, std::span<const Token> prompt) const {
  Found found, cells;
  bool in_host = true;
  walk(root, prompt, [&](const Children& children, std::span<const Token> rest, const Entry* next) {
    if (const Entry* checkpoint = longest_whole(children, rest, BlockKind::checkpoint)) {
      found = cells;
      found.last_usable = static_cast<TokenPos>(checkpoint->tokens.size());
      found.blocks.push_back(checkpoint->id);
      found.tokens += found.last_usable;
      if (in_host && checkpoint->host == HostState::held) found.tokens_in_host = found.tokens;
    }
    if (next == nullptr) return;
    cells.blocks.push_back(next->id);
    cells.tokens += block_tokens_;
    in_host = in_host && near(*next);
    if (in_host) cells.tokens_in_host = cells.tokens;
  });
  return found;
}

std::vector<Entry*> BlockTree::checkpoints(const BlockId& root, std::span<const Token> tokens) {
  std::vector<Entry*> found;
  walk(root, tokens, [&](const Children& children, std::span<const Token> rest, const Entry*) {
    const auto first = static_cast<std::ptrdiff_t>(found.size());
    while (Entry* checkpoint = longest_whole(children, rest, BlockKind::checkpoint)) {
      found.insert(found.begin() + first, checkpoint);
      rest = rest.first(checkpoint->tokens.size() - 1);
    }
  });
  return found;
}

Entry* BlockTree::covering(const Block& block) {
  if (Entry* known = get(block.id)) return known;
  const Children* children = children_of(block.parent);
  const bool full = static_cast<TokenPos>(block.tokens.size()) == block_tokens_;
  if (children == nullptr || full || kind_of(block.id) == BlockKind::checkpoint) return nullptr;
  Entry* best = longest_common(*children, block.tokens);
  const bool covers =
      best != nullptr && static_cast<std::size_t>(kv::common_prefix(best->tokens, block.tokens)) == block.tokens.size();
  return covers ? best : nullptr;
}

std::vector<Entry*> BlockTree::covered_by(const Entry& entry) {
  std::vector<Entry*> covered;
  if (entry.is_checkpoint()) return covered;
  const Children& siblings = *children_of(entry.parent_id);
  std::span<const Token> tokens(entry.tokens);
  while (Entry* shorter = longest_whole(siblings, tokens.first(tokens.size() - 1), BlockKind::cells)) {
    covered.push_back(shorter);
    tokens = tokens.first(shorter->tokens.size());
  }
  return covered;
}

// Without a checkpoint all is computed since the one before it. Of the time when it was saved: others on its way may
// come and go, and it stays good enough to choose by.
TokenPos BlockTree::saved_by(const Entry& entry) const {
  if (!entry.is_checkpoint()) return static_cast<TokenPos>(entry.tokens.size());
  std::span<const Token> tokens = std::span(entry.tokens).first(entry.tokens.size() - 1);
  for (const Entry* at = &entry;; at = at->parent, tokens = at->tokens) {
    const Children* siblings = children_of(at->parent_id);
    const Entry* before = siblings == nullptr ? nullptr : longest_whole(*siblings, tokens, BlockKind::checkpoint);
    if (before != nullptr) return entry.end() - before->end();
    if (at->parent == nullptr) return entry.end();
  }
}

}  // namespace coppice::tier
