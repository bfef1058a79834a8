#include "session/turn_memory.h"

#include <gtest/gtest.h>

namespace coppice::session {
namespace {

Digest digest(unsigned char n) { return Digest{n}; }
Turn turn(const char* id, std::size_t n_tokens = 10, NamespaceId ns = {}) {
  Turn t;
  t.ns = ns;
  t.session = std::string("session of ") + id;
  t.prompt = std::make_shared<const Tokens>(n_tokens, 1);
  t.ids = {id};
  return t;
}

TEST(TurnMemory, B23_FindsWhatWasRemembered) {
  TurnMemory memory({});
  memory.remember(digest(1), turn("a"));
  ASSERT_NE(memory.find(digest(1)), nullptr);
  EXPECT_EQ(memory.find(digest(1))->session, "session of a");
  EXPECT_EQ(memory.find(digest(2)), nullptr);
}

TEST(TurnMemory, B22_MintedIdsLeadToTheirSessionInTheirNamespaceOnly) {
  TurnMemory memory({});
  memory.remember(digest(1), turn("call_1", 10, NamespaceId{7}));
  EXPECT_EQ(memory.session_of(NamespaceId{7}, "call_1"), "session of call_1");
  EXPECT_EQ(memory.session_of(NamespaceId{8}, "call_1"), "");
  EXPECT_EQ(memory.session_of(NamespaceId{7}, "call_2"), "");
}

TEST(TurnMemory, NewerTurnOfTheSameConversationReplacesTheOlder) {
  TurnMemory memory({});
  memory.remember(digest(1), turn("a"));
  memory.remember(digest(1), turn("b"));
  EXPECT_EQ(memory.size(), 1U);
  EXPECT_EQ(memory.session_of({}, "a"), "");
  EXPECT_EQ(memory.session_of({}, "b"), "session of b");
}

TEST(TurnMemory, LimitsDropTheLeastRecentlyUsed) {
  TurnMemory memory({.turns_max = 2});
  memory.remember(digest(1), turn("a"));
  memory.remember(digest(2), turn("b"));
  memory.find(digest(1));
  memory.remember(digest(3), turn("c"));
  EXPECT_NE(memory.find(digest(1)), nullptr);
  EXPECT_EQ(memory.find(digest(2)), nullptr);
  EXPECT_EQ(memory.session_of({}, "b"), "");
}

TEST(TurnMemory, BytesAreBoundedAndCounted) {
  TurnMemory memory({.bytes_max = 10000});
  for (unsigned char i = 0; i < 20; ++i) {
    memory.remember(digest(i), turn("x", 500));
    EXPECT_LE(memory.bytes(), 10000U);
  }
  EXPECT_LT(memory.size(), 5U);
  memory.remember(digest(99), turn("big", 5000));  // larger than everything: not kept
  EXPECT_EQ(memory.size(), 0U);
  EXPECT_EQ(memory.bytes(), 0U);
}

}  // namespace
}  // namespace coppice::session
