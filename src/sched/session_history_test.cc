#include "sched/session_history.h"

#include <gtest/gtest.h>

namespace coppice::sched {
namespace {

kv::SessionKey key(const char* name) { return {NamespaceId{0}, name}; }
std::shared_ptr<const Tokens> prompt(std::size_t n) { return std::make_shared<const Tokens>(n, 1); }

TEST(SessionHistory, RemembersTheLastPromptOnly) {
  SessionHistory history({});
  history.remember(key("a"), prompt(3));
  history.remember(key("a"), prompt(5));
  EXPECT_EQ(history.last_prompt(key("a"))->size(), 5U);
  EXPECT_EQ(history.tokens(), 5U);
  EXPECT_EQ(history.last_prompt(key("b")), nullptr);
}

TEST(SessionHistory, LimitOfSessionsDropsTheLeastRecentlyUsed) {
  SessionHistory history({.sessions_max = 2});
  history.remember(key("a"), prompt(1));
  history.remember(key("b"), prompt(1));
  history.last_prompt(key("a"));
  history.remember(key("c"), prompt(1));
  EXPECT_NE(history.last_prompt(key("a")), nullptr);
  EXPECT_EQ(history.last_prompt(key("b")), nullptr);
  EXPECT_EQ(history.size(), 2U);
}

TEST(SessionHistory, LimitOfTokensKeepsAtLeastTheNewest) {
  SessionHistory history({.tokens_max = 10});
  history.remember(key("a"), prompt(6));
  history.remember(key("b"), prompt(6));
  EXPECT_EQ(history.last_prompt(key("a")), nullptr);
  history.remember(key("c"), prompt(100));
  EXPECT_EQ(history.size(), 1U);
  EXPECT_NE(history.last_prompt(key("c")), nullptr);
}

}  // namespace
}  // namespace coppice::sched
