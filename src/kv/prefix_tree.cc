#include "kv/prefix_tree.h"

#include <algorithm>
#include <cassert>

#include "kv/prefix.h"

namespace coppice::kv {
namespace {

std::size_t bit(SeqId seq) { return static_cast<std::size_t>(seq.value); }

}  // namespace

PrefixTree::PrefixTree(std::int32_t n_seqs) : seqs_(static_cast<std::size_t>(n_seqs)) {
  assert(n_seqs >= 1 && n_seqs <= kSeqsMax);
}

std::vector<TokenPos> PrefixTree::common(NamespaceId ns, std::span<const Token> prompt) const {
  Path path;
  const auto root = roots_.find(ns);
  NodeId id = root == roots_.end() ? kNone : root->second;
  std::size_t depth = 0;
  while (id != kNone && depth < prompt.size()) {
    id = child(node(id), prompt[depth]);
    if (id == kNone) break;
    const Tokens& run = node(id).tokens;
    const auto matched = static_cast<std::size_t>(common_prefix(run, prompt.subspan(depth)));
    depth += matched;
    path.emplace_back(id, static_cast<TokenPos>(depth));
    if (matched < run.size()) break;
  }
  return common_along(path);
}

std::vector<TokenPos> PrefixTree::common_with(SeqId seq) const {
  assert(contains(seq));
  Path path;
  TokenPos depth = at(seq).length;
  for (NodeId id = at(seq).node; node(id).parent != kNone; id = node(id).parent) {
    path.emplace_back(id, depth);
    depth = node(id).begin;
  }
  std::reverse(path.begin(), path.end());
  return common_along(path);
}

// A sequence has in common what the deepest node of the path that it goes through says, as far as it goes itself.
std::vector<TokenPos> PrefixTree::common_along(const Path& path) const {
  std::vector<TokenPos> result(seqs_.size(), 0);
  SeqSet done;
  for (auto step = path.rbegin(); step != path.rend(); ++step) {
    const SeqSet fresh = node(step->first).seqs & ~done;
    for (std::size_t i = fresh._Find_first(); i < kSeqsMax; i = fresh._Find_next(i)) {
      result[i] = std::min(step->second, seqs_[i].length);
    }
    done |= fresh;
  }
  return result;
}

void PrefixTree::assign(SeqId seq, NamespaceId ns, std::span<const Token> tokens) {
  truncate(seq, 0);
  if (tokens.empty()) return;
  Seq& s = at(seq);
  s = {.node = root_of(ns), .length = 0, .ns = ns};
  node(s.node).seqs.set(bit(seq));
  while (static_cast<std::size_t>(s.length) < tokens.size()) {
    const auto rest = tokens.subspan(static_cast<std::size_t>(s.length));
    NodeId next = child(node(s.node), rest[0]);
    if (next == kNone) {
      if (node(s.node).parent != kNone && node(s.node).children.empty()) {  // a leaf that it goes beyond
        node(s.node).tokens.insert(node(s.node).tokens.end(), rest.begin(), rest.end());
        n_tokens_ += rest.size();
      } else {
        next = make_node(s.node, rest);
        enter(seq, next);
      }
      s.length = static_cast<TokenPos>(tokens.size());
      return;
    }
    const TokenPos matched = common_prefix(node(next).tokens, rest);
    const bool whole = matched == static_cast<TokenPos>(node(next).tokens.size());
    const bool leaves = !whole && static_cast<std::size_t>(matched) < rest.size();
    if (leaves) split(next, node(next).begin + matched);
    enter(seq, next);
    s.length += matched;
  }
}

void PrefixTree::append(SeqId seq, Token token) {
  Seq& s = at(seq);
  assert(s.length > 0);
  if (s.length < node(s.node).end()) {  // inside a run that others made longer
    const auto offset = static_cast<std::size_t>(s.length - node(s.node).begin);
    if (node(s.node).tokens[offset] == token) {
      ++s.length;
      return;
    }
    split(s.node, s.length);
  }
  if (NodeId next = child(node(s.node), token); next != kNone) {
    enter(seq, next);
  } else if (node(s.node).children.empty()) {
    node(s.node).tokens.push_back(token);
    ++n_tokens_;
  } else {
    next = make_node(s.node, {&token, 1});
    enter(seq, next);
  }
  ++s.length;
}

void PrefixTree::truncate(SeqId seq, TokenPos length) {
  Seq& s = at(seq);
  assert(0 <= length && length <= s.length);
  if (length == s.length) return;
  s.length = length;
  while (s.node != kNone && node(s.node).begin >= length) {  // the root's begin is 0: it stays unless length is 0
    const NodeId left = s.node;
    s.node = node(left).parent;
    node(left).seqs.reset(bit(seq));
    tidy(left);
  }
  if (s.node != kNone) {
    tidy(s.node);
  } else {
    s = Seq{};
  }
}

Tokens PrefixTree::tokens(SeqId seq, TokenPos begin, TokenPos end) const {
  assert(0 <= begin && begin <= end && end <= at(seq).length);
  Tokens result(static_cast<std::size_t>(end - begin));
  for (NodeId id = at(seq).node; id != kNone && node(id).end() > begin; id = node(id).parent) {
    const Node& n = node(id);
    const TokenPos from = std::max(begin, n.begin), to = std::min(end, n.end());
    if (from < to) std::copy_n(n.tokens.begin() + (from - n.begin), to - from, result.begin() + (from - begin));
  }
  return result;
}

std::vector<std::int32_t> PrefixTree::top_runs(NamespaceId ns) const {
  const auto root = roots_.find(ns);
  return root == roots_.end() ? std::vector<std::int32_t>{} : node(root->second).children;
}

PrefixTree::Run PrefixTree::run(std::int32_t id) const {
  const Node& n = node(id);
  Run result{.begin = n.begin, .tokens = n.tokens, .through = n.seqs, .ends = {}, .children = n.children};
  for (std::size_t i = 0; i < seqs_.size(); ++i) {
    if (seqs_[i].length > 0 && seqs_[i].node == id) result.ends.push_back(SeqId{static_cast<std::int32_t>(i)});
  }
  return result;
}

PrefixTree::NodeId PrefixTree::root_of(NamespaceId ns) {
  const auto [it, is_new] = roots_.try_emplace(ns, kNone);
  if (is_new) it->second = make_node(kNone, {});
  return it->second;
}

// REQUIRES: `tokens` is no part of this tree: nodes_ may move.
PrefixTree::NodeId PrefixTree::make_node(NodeId parent, std::span<const Token> tokens) {
  NodeId id = static_cast<NodeId>(nodes_.size());
  if (free_.empty()) {
    nodes_.emplace_back();
  } else {
    id = free_.back();
    free_.pop_back();
  }
  Node& n = node(id);
  n.tokens.assign(tokens.begin(), tokens.end());
  n_tokens_ += n.tokens.size();
  if (parent != kNone) {
    n.begin = node(parent).end();
    adopt(parent, id);
  }
  return id;
}

void PrefixTree::release(NodeId id) {
  n_tokens_ -= node(id).tokens.size();
  node(id) = Node{};
  free_.push_back(id);
}

PrefixTree::NodeId PrefixTree::child(const Node& n, Token first) const {
  const auto it = std::lower_bound(n.children.begin(), n.children.end(), first,
                                   [&](NodeId id, Token token) { return node(id).tokens.front() < token; });
  return it != n.children.end() && node(*it).tokens.front() == first ? *it : kNone;
}

void PrefixTree::adopt(NodeId parent, NodeId child) {
  auto& children = node(parent).children;
  const auto at = std::lower_bound(children.begin(), children.end(), node(child).tokens.front(),
                                   [&](NodeId id, Token token) { return node(id).tokens.front() < token; });
  children.insert(at, child);
  node(child).parent = parent;
}

void PrefixTree::disown(NodeId parent, NodeId child) { std::erase(node(parent).children, child); }

void PrefixTree::enter(SeqId seq, NodeId id) {
  node(id).seqs.set(bit(seq));
  at(seq).node = id;
}

// Cuts the run before position `at`: the node keeps the first part, a new child takes the rest with all children.
// REQUIRES: node(id).begin < at < node(id).end().
void PrefixTree::split(NodeId id, TokenPos at) {
  const Tokens rest(node(id).tokens.begin() + (at - node(id).begin), node(id).tokens.end());
  const std::vector<NodeId> grandchildren = std::exchange(node(id).children, {});
  node(id).tokens.resize(static_cast<std::size_t>(at - node(id).begin));
  n_tokens_ -= rest.size();
  const NodeId lower = make_node(id, rest);
  node(lower).children = grandchildren;
  for (const NodeId grandchild : grandchildren) node(grandchild).parent = lower;
  node(lower).seqs = node(id).seqs;
  for (std::size_t i = 0; i < seqs_.size(); ++i) {
    if (!node(id).seqs[i] || seqs_[i].node != id) continue;
    if (seqs_[i].length > at) {
      seqs_[i].node = lower;
    } else {
      node(lower).seqs.reset(i);
    }
  }
}

// Restores the invariants of a node that a sequence has left, or has become shorter in.
void PrefixTree::tidy(NodeId id) {
  Node& n = node(id);
  if (n.seqs.none()) {
    assert(n.children.empty());
    if (n.parent == kNone) {
      std::erase_if(roots_, [&](const auto& root) { return root.second == id; });
    } else {
      disown(n.parent, id);
    }
    release(id);
  } else if (n.parent != kNone) {
    if (n.children.empty()) trim(id);
    if (n.children.size() == 1) merge_only_child(id);
  }
}

// Drops the tokens at a leaf's end that no sequence reaches.
void PrefixTree::trim(NodeId id) {
  TokenPos end = node(id).begin;
  for (const Seq& s : seqs_) {
    if (s.node == id) end = std::max(end, s.length);
  }
  const auto size = static_cast<std::size_t>(end - node(id).begin);
  n_tokens_ -= node(id).tokens.size() - size;
  node(id).tokens.resize(size);
}

void PrefixTree::merge_only_child(NodeId id) {
  const NodeId only = node(id).children.front();
  Node below = std::exchange(node(only), Node{});
  Node& n = node(id);
  n.tokens.insert(n.tokens.end(), below.tokens.begin(), below.tokens.end());
  n.children = std::move(below.children);
  for (const NodeId grandchild : n.children) node(grandchild).parent = id;
  for (Seq& s : seqs_) {
    if (s.node == only) s.node = id;
  }
  free_.push_back(only);
}

void PrefixTree::check_invariants() const {
  [[maybe_unused]] std::size_t n_tokens = 0;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const auto id = static_cast<NodeId>(i);
    if (std::find(free_.begin(), free_.end(), id) != free_.end()) continue;
    const Node& n = node(id);
    n_tokens += n.tokens.size();
    assert(n.seqs.any());
    assert((n.parent == kNone) == n.tokens.empty());
    assert(n.parent == kNone || n.children.size() != 1);
    [[maybe_unused]] SeqSet expected;
    [[maybe_unused]] TokenPos reached = n.begin;
    for (const NodeId c : n.children) {
      assert(node(c).parent == id && node(c).begin == n.end());
      assert((expected & node(c).seqs).none());
      expected |= node(c).seqs;
      reached = n.end();
    }
    for (std::size_t c = 1; c < n.children.size(); ++c) {
      assert(node(n.children[c - 1]).tokens.front() < node(n.children[c]).tokens.front());
    }
    for (std::size_t s = 0; s < seqs_.size(); ++s) {
      if (seqs_[s].length == 0 || seqs_[s].node != id) continue;
      assert(!expected[s] && n.begin < seqs_[s].length && seqs_[s].length <= n.end());
      expected.set(s);
      reached = std::max(reached, seqs_[s].length);
    }
    assert(expected == n.seqs && reached == n.end());
  }
  assert(n_tokens == n_tokens_);
  assert(n_nodes() <= 2 * seqs_.size() + roots_.size());
}

}  // namespace coppice::kv
