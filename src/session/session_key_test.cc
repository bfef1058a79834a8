#include "session/session_key.h"

#include <gtest/gtest.h>

#include <map>

#include "base/json.h"

namespace coppice::session {
namespace {

Result<SessionKey> find(const char* body, std::map<std::string, std::string> headers = {}) {
  return find_session_key(
      Json::parse(body),
      [&](std::string_view name) {
        auto it = headers.find(std::string(name));
        return it == headers.end() ? std::string_view{} : std::string_view{it->second};
      },
      256);
}

TEST(SessionKey, A3_NoKeyFindsNoneAndNamesNoRule) {
  for (const char* body : {"{}", R"({"session_id":null})", R"({"session_id":""})"}) {
    auto found = find(body, {{"user-agent", "x"}});
    ASSERT_TRUE(found) << body;
    EXPECT_EQ(found->key, "") << body;
    EXPECT_EQ(found->rule, "") << body;
  }
}

TEST(SessionKey, RulesInOrderOfTrust) {
  struct Case {
    const char* body;
    std::map<std::string, std::string> headers;
    const char *key, *rule;
  };
  const Case cases[] = {
      {R"({"session_id":"a"})", {}, "a", "body.session_id"},
      {R"({"session_id":"a"})", {{"x-session-id", "b"}}, "a", "body.session_id"},
      {R"({})", {{"x-session-id", "b"}}, "b", "header.x-session-id"},
      {R"({"session_id":""})", {{"x-session-id", "b"}}, "b", "header.x-session-id"},
      {R"({"session_id":null})", {{"x-session-id", "b"}}, "b", "header.x-session-id"},
  };
  for (const Case& c : cases) {
    auto found = find(c.body, c.headers);
    ASSERT_TRUE(found) << c.body;
    EXPECT_EQ(found->key, c.key) << c.body;
    EXPECT_EQ(found->rule, c.rule) << c.body;
  }
}

TEST(SessionKey, LengthIsCapped) {
  const std::string fits(256, 'k'), too_long(257, 'k');
  EXPECT_EQ(find(("{\"session_id\":\"" + fits + "\"}").c_str())->key, fits);
  auto refused = find(("{\"session_id\":\"" + too_long + "\"}").c_str());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::invalid_request);
  EXPECT_EQ(refused.error().param, "session_id");
  EXPECT_EQ(find("{}", {{"x-session-id", fits}})->key, fits);
  EXPECT_EQ(find("{}", {{"x-session-id", too_long}})->key, "");
}

TEST(SessionKey, WrongTypeIsAnError) {
  for (const char* body : {R"({"session_id":7})", R"({"session_id":["a"]})", R"({"session_id":{}})"}) {
    auto found = find(body, {{"x-session-id", "b"}});
    ASSERT_FALSE(found) << body;
    EXPECT_EQ(found.error().param, "session_id");
  }
}

}  // namespace
}  // namespace coppice::session
