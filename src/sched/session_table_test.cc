#include "sched/session_table.h"

#include <gtest/gtest.h>

namespace coppice::sched {
namespace {

kv::SessionKey key(const char* name, std::uint64_t ns = 0) { return {NamespaceId{ns}, name}; }
std::shared_ptr<const Tokens> prompt(std::size_t n) { return std::make_shared<const Tokens>(n, 1); }
void begin(SessionTable& table, const kv::SessionKey& k, std::size_t n, int seq = 0, const std::string& parent = {}) {
  table.begin(k, prompt(n), parent, SeqId{seq}, TimePoint{});
}

TEST(SessionTable, RemembersTheLastPromptOnly) {
  SessionTable table({});
  begin(table, key("a"), 3);
  begin(table, key("a"), 5);
  EXPECT_EQ(table.find(key("a"))->last_prompt->size(), 5U);
  EXPECT_EQ(table.find(key("a"))->requests, 2);
  EXPECT_EQ(table.tokens(), 5U);
  EXPECT_EQ(table.find(key("b")), nullptr);
}

TEST(SessionTable, LimitOfSessionsDropsTheLeastRecentlyUsed) {
  SessionTable table({.sessions_max = 2});
  begin(table, key("a"), 1);
  begin(table, key("b"), 1);
  begin(table, key("a"), 1);
  begin(table, key("c"), 1);
  EXPECT_NE(table.find(key("a")), nullptr);
  EXPECT_EQ(table.find(key("b")), nullptr);
  EXPECT_EQ(table.size(), 2U);
}

TEST(SessionTable, SaysWhichSessionsItForgets) {
  std::vector<std::string> forgotten;
  SessionTable table({.sessions_max = 2}, [&](const kv::SessionKey& k) { forgotten.push_back(k.name); });
  begin(table, key("a"), 1);
  begin(table, key("b"), 1);
  begin(table, key("c"), 1);
  table.forget(key("c"));
  EXPECT_EQ(forgotten, (std::vector<std::string>{"a", "c"}));
}

TEST(SessionTable, SessionsOfBeforeAreTheOldest) {
  SessionTable table({.sessions_max = 2});
  const auto before = [](const char* name) {
    return SessionTable::Session{.key = key(name), .last_prompt = prompt(2), .prompt_tokens = 9};
  };
  EXPECT_TRUE(table.restore(before("a")));
  EXPECT_FALSE(table.restore(before("a")));
  EXPECT_TRUE(table.restore(before("b")));
  EXPECT_FALSE(table.restore(before("c")));
  EXPECT_EQ(table.tokens(), 4U);
  EXPECT_EQ(table.recent({}, 1).at(0)->key.name, "a");
  begin(table, key("d"), 1);
  EXPECT_EQ(table.find(key("b")), nullptr);
  EXPECT_EQ(table.find(key("a"))->prompt_tokens, 9);
}

TEST(SessionTable, LimitOfTokensKeepsAtLeastTheNewest) {
  SessionTable table({.tokens_max = 10});
  begin(table, key("a"), 6);
  begin(table, key("b"), 6);
  EXPECT_EQ(table.find(key("a")), nullptr);
  begin(table, key("c"), 100);
  EXPECT_EQ(table.size(), 1U);
  EXPECT_NE(table.find(key("c")), nullptr);
}

TEST(SessionTable, LatestSequenceIsLostOnlyWhereItStillIsTheLatest) {
  SessionTable table({});
  begin(table, key("a"), 1, 4);
  begin(table, key("a"), 1, 7);
  table.lost(key("a"), SeqId{4});
  EXPECT_EQ(table.find(key("a"))->latest, SeqId{7});
  table.lost(key("a"), SeqId{7});
  EXPECT_EQ(table.find(key("a"))->latest, std::nullopt);
  table.lost(key("unknown"), SeqId{7});
}

TEST(SessionTable, ParentStaysUntilAnotherIsNamed) {
  SessionTable table({});
  begin(table, key("a"), 1, 0, "root");
  begin(table, key("a"), 1);
  EXPECT_EQ(table.find(key("a"))->parent, "root");
}

TEST(SessionTable, B24_ListIsOfOneNamespaceMostRecentFirst) {
  SessionTable table({});
  begin(table, key("a"), 1);
  begin(table, key("b"), 1);
  begin(table, key("x", 9), 1);
  begin(table, key("a"), 1);
  const auto recent = table.recent(NamespaceId{0}, 10);
  ASSERT_EQ(recent.size(), 2U);
  EXPECT_EQ(recent[0]->key.name, "a");
  EXPECT_EQ(table.recent(NamespaceId{0}, 1).size(), 1U);
  table.forget(key("a"));
  EXPECT_EQ(table.recent(NamespaceId{0}, 10).size(), 1U);
  EXPECT_EQ(table.tokens(), 2U);
}

}  // namespace
}  // namespace coppice::sched
