// Which sequence begins with which tokens: a radix tree over token ids, one root per namespace (spec B15, B24).
//
// A node is a run of tokens that one or more sequences have in common; its children differ in their first token. A
// sequence is a path from the root that may end inside a run, so that sequences which are prefixes of others split
// nothing. The tree is the only copy of what the sequences hold: a base of 100,000 tokens under 256 agents is stored
// once. It knows nothing of cells: which tokens a sequence *will* hold (promised, while its prompt is being computed)
// and which it holds already is the caller's to tell apart.
//
//   root -- [system prompt, 1500] -- [agent A's turns, 900]        A ends at 2400
//                          `-------- [agent B's turns, 40]         B ends at 1540
//
// Owner: sched::Sequences. Threading: none of its own.
// Cost: common() and assign() are linear in the tokens given (plus the number of sequences); append() is O(1)
// amortised; copying moves at most one run when a node splits or merges. Memory: at most 2 nodes per sequence, tokens
// at most the sum of all lengths.
// Invariants (check_invariants):
//   1. a node's tokens begin where its parent's end; children of a node differ in their first token
//   2. a node's set of sequences is exactly those whose path has at least one token in it
//   3. no node without sequences (a root may be empty only before its removal), no token that no sequence reaches
//   4. a node with exactly one child is the root of its namespace
// Source: radix trees as prefix caches are known from SGLang (RadixAttention, Zheng et al. 2023); paths that end inside
// a run, and sets of sequences instead of reference counts, are ours.
#pragma once

#include <bitset>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "base/ids.h"

namespace coppice::kv {

class PrefixTree {
 public:
  static constexpr std::int32_t kSeqsMax = 256;  // as many as a llama context has
  using SeqSet = std::bitset<kSeqsMax>;

  // REQUIRES: 1 <= n_seqs <= kSeqsMax. Valid SeqIds are 0 .. n_seqs - 1; none is in the tree at first.
  explicit PrefixTree(std::int32_t n_seqs);

  // How many leading tokens of `prompt` each sequence begins with, by SeqId; 0 in other namespaces.
  std::vector<TokenPos> common(NamespaceId ns, std::span<const Token> prompt) const;

  // How many leading tokens each sequence has in common with this one, by SeqId. REQUIRES: contains(seq).
  std::vector<TokenPos> common_with(SeqId seq) const;

  // From now on the sequence is exactly these tokens, whatever it was before. Empty: it leaves the tree.
  void assign(SeqId seq, NamespaceId ns, std::span<const Token> tokens);

  // One token more at the end. REQUIRES: contains(seq).
  void append(SeqId seq, Token token);

  // Only the first `length` tokens stay; 0: it leaves the tree. REQUIRES: 0 <= length <= length(seq).
  void truncate(SeqId seq, TokenPos length);

  bool contains(SeqId seq) const { return at(seq).length > 0; }
  TokenPos length(SeqId seq) const { return at(seq).length; }
  NamespaceId ns(SeqId seq) const { return at(seq).ns; }

  // A copy of tokens [begin, end) of the sequence. REQUIRES: 0 <= begin <= end <= length(seq).
  Tokens tokens(SeqId seq, TokenPos begin, TokenPos end) const;

  std::size_t n_nodes() const { return nodes_.size() - free_.size(); }
  std::size_t n_tokens() const { return n_tokens_; }  // stored in all nodes

  // For showing the tree to people: one run of tokens, and what lies below it.
  struct Run {
    TokenPos begin = 0;
    std::span<const Token> tokens;
    SeqSet through;                      // sequences with at least one token in it
    std::vector<SeqId> ends;             // those whose last token is in it
    std::vector<std::int32_t> children;  // ids for run()
  };
  std::vector<std::int32_t> top_runs(NamespaceId ns) const;
  // REQUIRES: `id` came from top_runs() or children, and the tree has not changed since.
  Run run(std::int32_t id) const;

  void check_invariants() const;  // asserts

 private:
  using NodeId = std::int32_t;
  static constexpr NodeId kNone = -1;
  struct Node {
    Tokens tokens;
    TokenPos begin = 0;
    NodeId parent = kNone;
    std::vector<NodeId> children;  // in order of their first token
    SeqSet seqs;
    TokenPos end() const { return begin + static_cast<TokenPos>(tokens.size()); }
  };
  struct Seq {
    NodeId node = kNone;  // the one that its last token is in
    TokenPos length = 0;  // 0: not in the tree
    NamespaceId ns;
  };

  Node& node(NodeId id) { return nodes_[static_cast<std::size_t>(id)]; }
  const Node& node(NodeId id) const { return nodes_[static_cast<std::size_t>(id)]; }
  Seq& at(SeqId seq) { return seqs_[static_cast<std::size_t>(seq.value)]; }
  const Seq& at(SeqId seq) const { return seqs_[static_cast<std::size_t>(seq.value)]; }

  // Nodes from the top down, each with how many tokens from the root are common up to its end or to where it is left.
  using Path = std::vector<std::pair<NodeId, TokenPos>>;
  std::vector<TokenPos> common_along(const Path& path) const;

  NodeId root_of(NamespaceId ns);
  NodeId make_node(NodeId parent, std::span<const Token> tokens);
  void release(NodeId id);
  NodeId child(const Node& n, Token first) const;
  void adopt(NodeId parent, NodeId child);
  void disown(NodeId parent, NodeId child);
  void split(NodeId id, TokenPos at);
  void tidy(NodeId id);
  void trim(NodeId id);
  void merge_only_child(NodeId id);
  void enter(SeqId seq, NodeId id);

  std::vector<Node> nodes_;
  std::vector<NodeId> free_;
  std::vector<Seq> seqs_;
  std::map<NamespaceId, NodeId> roots_;
  std::size_t n_tokens_ = 0;
};

}  // namespace coppice::kv
