#include "tier/block.h"

#include <gtest/gtest.h>

#include <set>

namespace coppice::tier {
namespace {

TEST(Block, B20_NamesDependOnTheTokensAndAllThatTheyComeBehind) {
  const BlockId root = root_of("model", "");
  const Tokens tokens{1, 2, 3};
  const BlockId id = id_of(root, tokens);
  EXPECT_EQ(id, id_of(root, tokens));
  const std::set<BlockId> different{id,
                                    id_of(root, Tokens{1, 2}),
                                    id_of(root, Tokens{1, 2, 4}),
                                    id_of(root_of("other model", ""), tokens),
                                    id_of(root_of("model", "a"), tokens),
                                    id_of(id, tokens)};
  EXPECT_EQ(different.size(), 6U);
}

TEST(Block, B24_FingerprintAndNamespaceAreKeptApart) { EXPECT_NE(root_of("ab", "c"), root_of("a", "bc")); }

// The format on disk depends on it.
TEST(Block, NamesAreTheSameInEveryVersion) {
  EXPECT_EQ(short_hex(root_of("model", "space")), "1fcd5a1cadce6f0b");
  EXPECT_EQ(short_hex(id_of(root_of("model", "space"), Tokens{1, -2, 300000})), "c678dc52c697a772");
}

}  // namespace
}  // namespace coppice::tier
