#include "kv/prefix_tree.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "kv/prefix.h"
#include "kv/test_ids.h"

namespace coppice::kv {
namespace {

TEST(PrefixTree, B15_EveryoneWhoBeginsWithThePromptIsFound) {
  PrefixTree tree(3);
  tree.assign(a, ns, Tokens{1, 2, 3, 4, 5});
  tree.assign(b, ns, Tokens{1, 2, 9});
  tree.assign(c, ns, Tokens{8});
  EXPECT_EQ(tree.common(ns, Tokens{1, 2, 3, 7}), (std::vector<TokenPos>{3, 2, 0}));
  EXPECT_EQ(tree.common(ns, Tokens{1, 2, 9, 9, 9}), (std::vector<TokenPos>{2, 3, 0}));
  EXPECT_EQ(tree.common(ns, Tokens{}), (std::vector<TokenPos>{0, 0, 0}));
}

TEST(PrefixTree, B24_OtherNamespacesAreNotSeen) {
  PrefixTree tree(2);
  tree.assign(a, ns, Tokens{1, 2, 3});
  EXPECT_EQ(tree.common(elsewhere, Tokens{1, 2, 3})[0], 0);
  tree.assign(b, elsewhere, Tokens{1, 2});
  EXPECT_EQ(tree.common(elsewhere, Tokens{1, 2, 3}), (std::vector<TokenPos>{0, 2}));
  EXPECT_EQ(tree.common_with(b)[0], 0);
}

TEST(PrefixTree, SharedTokensAreStoredOnce) {
  PrefixTree tree(256);
  const Tokens base(100000, 5);
  for (int i = 0; i < 256; ++i) {
    Tokens agent = base;
    agent.push_back(10 + i);
    tree.assign(SeqId{i}, ns, agent);
  }
  EXPECT_EQ(tree.n_tokens(), base.size() + 256);
  EXPECT_EQ(tree.n_nodes(), 1U + 1U + 256U);  // root, base, one for each agent
}

TEST(PrefixTree, ASequenceThatIsAnothersPrefixSplitsNothing) {
  PrefixTree tree(3);
  tree.assign(a, ns, Tokens{1, 2, 3, 4, 5});
  tree.assign(b, ns, Tokens{1, 2, 3});
  EXPECT_EQ(tree.n_nodes(), 2U);
  tree.append(b, 4);  // goes along
  EXPECT_EQ(tree.n_nodes(), 2U);
  tree.append(b, 7);  // leaves
  EXPECT_EQ(tree.n_nodes(), 4U);
  EXPECT_EQ(tree.common_with(a), (std::vector<TokenPos>{5, 4, 0}));
  tree.truncate(b, 4);
  EXPECT_EQ(tree.n_nodes(), 2U);
  tree.check_invariants();
}

TEST(PrefixTree, TruncatingTheLongestShortensTheRun) {
  PrefixTree tree(2);
  tree.assign(a, ns, Tokens{1, 2, 3, 4, 5});
  tree.assign(b, ns, Tokens{1, 2, 3});
  tree.truncate(a, 1);
  EXPECT_EQ(tree.n_tokens(), 3U);
  tree.truncate(b, 0);
  tree.truncate(a, 0);
  EXPECT_EQ(tree.n_tokens(), 0U);
  EXPECT_EQ(tree.n_nodes(), 0U);  // the namespace is gone, too
}

TEST(PrefixTree, RunsShowTheTree) {
  PrefixTree tree(3);
  tree.assign(a, ns, Tokens{1, 2, 3, 4});
  tree.assign(b, ns, Tokens{1, 2, 9});
  tree.assign(c, ns, Tokens{1, 2});
  const auto top = tree.top_runs(ns);
  ASSERT_EQ(top.size(), 1U);
  const PrefixTree::Run base = tree.run(top[0]);
  EXPECT_EQ(Tokens(base.tokens.begin(), base.tokens.end()), (Tokens{1, 2}));
  EXPECT_EQ(base.ends, std::vector<SeqId>{c});
  EXPECT_EQ(base.through.count(), 3U);
  EXPECT_EQ(base.children.size(), 2U);
  EXPECT_TRUE(tree.top_runs(elsewhere).empty());
}

// The naive model: a list of tokens for each sequence.
struct OneListPerSequence {
  struct Sequence {
    NamespaceId ns;
    Tokens tokens;
  };
  std::vector<Sequence> seqs;
  std::vector<TokenPos> common(NamespaceId space, const Tokens& prompt) const {
    std::vector<TokenPos> result;
    for (const Sequence& s : seqs) result.push_back(s.ns == space ? common_prefix(s.tokens, prompt) : 0);
    return result;
  }
};

RC_GTEST_PROP(PrefixTree, AgreesWithOneListPerSequence, ()) {
  constexpr int n_seqs = 6;
  PrefixTree tree(n_seqs);
  OneListPerSequence naive{std::vector<OneListPerSequence::Sequence>(n_seqs)};
  // Few different tokens, so that runs meet and part everywhere.
  const auto tokens = [] { return *rc::gen::container<Tokens>(rc::gen::inRange(1, 3)); };
  const int n_steps = *rc::gen::inRange(0, 80);
  for (int step = 0; step < n_steps; ++step) {
    const int i = *rc::gen::inRange(0, n_seqs);
    const SeqId seq{i};
    auto& mine = naive.seqs[static_cast<std::size_t>(i)];
    switch (*rc::gen::inRange(0, 4)) {
      case 0:
        mine = {NamespaceId{static_cast<std::uint64_t>(*rc::gen::inRange(0, 2))}, tokens()};
        tree.assign(seq, mine.ns, mine.tokens);
        break;
      case 1:  // like another one, for a while
        mine = naive.seqs[static_cast<std::size_t>(*rc::gen::inRange(0, n_seqs))];
        if (!mine.tokens.empty())
          mine.tokens.resize(1 + static_cast<std::size_t>(*rc::gen::inRange(0, 30)) % mine.tokens.size());
        tree.assign(seq, mine.ns, mine.tokens);
        break;
      case 2:
        if (mine.tokens.empty()) break;
        for (const Token token : tokens()) mine.tokens.push_back(token), tree.append(seq, token);
        break;
      case 3: {
        const int length = *rc::gen::inRange(0, static_cast<int>(mine.tokens.size()) + 1);
        mine.tokens.resize(static_cast<std::size_t>(length));
        tree.truncate(seq, length);
        break;
      }
    }
    tree.check_invariants();
  }
  for (int i = 0; i < n_seqs; ++i) {
    const auto& mine = naive.seqs[static_cast<std::size_t>(i)];
    const SeqId seq{i};
    RC_ASSERT(tree.length(seq) == static_cast<TokenPos>(mine.tokens.size()));
    RC_ASSERT(tree.tokens(seq, 0, tree.length(seq)) == mine.tokens);
    if (!mine.tokens.empty()) RC_ASSERT(tree.common_with(seq) == naive.common(mine.ns, mine.tokens));
  }
  const Tokens prompt = tokens();
  for (const NamespaceId space : {NamespaceId{0}, NamespaceId{1}}) {
    RC_ASSERT(tree.common(space, prompt) == naive.common(space, prompt));
  }
}

}  // namespace
}  // namespace coppice::kv
