#include "api/stable_prefix.h"

#include <gtest/gtest.h>

#include "api/fakes.h"

namespace coppice::api {
namespace {

// The fakes render "role:content\n" per message, and a token is a byte; a BOS comes first.
struct Prefix : testing::Test {
  FakeServer server;

  std::string of(const char* body) {
    const auto tokens = stable_prefix(Json::parse(body), server.context().services);
    return tokens ? server.tokenizer.text(*tokens, true) : "error: " + tokens.error().message;
  }
};

constexpr const char* kSystem = R"({"messages":[{"role":"system","content":"s"}]})";
constexpr const char* kUser = R"({"messages":[{"role":"system","content":"s"},{"role":"user","content":"u"}]})";

TEST_F(Prefix, EndsWhereTheNextMessageBegins) {
  EXPECT_EQ(of(kSystem), "<s>system:s\nuser:");
  EXPECT_EQ(of(R"({"messages":[{"role":"user","content":"u"},{"role":"assistant","content":"a"}]})"),
            "<s>user:u\nassistant:a\nuser:");
  EXPECT_EQ(of(R"({"messages":[{"role":"assistant","content":"a","tool_calls":[{"id":"1"}]}]})"),
            "<s>assistant:a\ntool:");
}

TEST_F(Prefix, AfterAUsersOrToolsMessageAnAnswerComesNext) {
  server.templates.generation_prompt = "assistant:";
  EXPECT_EQ(of(kUser), "<s>system:s\nuser:u\n");
  EXPECT_EQ(of(R"({"messages":[{"role":"tool","content":"t"}]})"), "<s>tool:t\n");
}

TEST_F(Prefix, HoldsNoTokenThatTheContinuationChanges) {
  server.tokenizer.merge_lines = true;  // a line's end and the next byte are one token
  server.templates.generation_prompt = "assistant:";
  EXPECT_EQ(of(kUser), "<s>system:suser:u");  // without the last line's end, which is one with what follows
}

TEST_F(Prefix, ATemplateThatNeedsAUserGetsOne) {
  server.templates.accepts = [](const Json& messages) { return messages.back()["role"] == "user"; };
  EXPECT_EQ(of(kSystem), "<s>system:s\nuser:");
}

TEST_F(Prefix, WithoutContinuationsItIsRenderedAsItIs) {
  server.templates.generation_prompt = "assistant:";
  server.templates.accepts = [](const Json& messages) { return messages.size() == 1; };
  EXPECT_EQ(of(kSystem), "<s>system:s\n");
}

TEST_F(Prefix, TheTemplatesRefusalIsTheError) {
  server.templates.accepts = [](const Json&) { return false; };
  EXPECT_EQ(of(kSystem), "error: the template does not take these messages");
}

TEST_F(Prefix, WhoSaysHowItEndsIsObeyed) {
  server.templates.generation_prompt = "assistant:";
  EXPECT_EQ(of(R"({"messages":[{"role":"user","content":"u"}],"add_generation_prompt":true})"),
            "<s>user:u\nassistant:");
  EXPECT_EQ(of(R"({"messages":[{"role":"system","content":"s"}],"add_generation_prompt":false})"), "<s>system:s\n");
  EXPECT_EQ(of(R"({"messages":[{"role":"assistant","content":"a"}],"continue_final_message":true})"),
            "<s>assistant:a\n");
}

TEST_F(Prefix, MessagesThatAreNone) {
  for (const char* body : {R"({"messages":7})", R"({"messages":{}})"}) {
    EXPECT_EQ(of(body), "error: 'messages' must be an array") << body;
  }
  EXPECT_EQ(of(R"({"messages":[]})"), "<s>");
}

TEST_F(Prefix, TextOverTheContextIsNotTokenized) {
  const std::string body = R"({"messages":[{"role":"system","content":")" + std::string(5000, 'x') + R"("}]})";
  const auto tokens = stable_prefix(Json::parse(body), server.context().services);
  ASSERT_FALSE(tokens.has_value());
  EXPECT_EQ(tokens.error().kind, ErrorKind::context_overflow);
  EXPECT_LT(server.tokenizer.longest_tokenized, 5000U);
}

}  // namespace
}  // namespace coppice::api
