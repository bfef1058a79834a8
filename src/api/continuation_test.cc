#include "api/continuation.h"

#include <gtest/gtest.h>

#include "api/fakes.h"
#include "base/json.h"

namespace coppice::api {
namespace {

// The fake tokenizer has one token per byte, so what was "sampled" is marked by tokens that no text gives.
constexpr Token kSampled = 400;
// A template that ends every message with the token that ends a generation.
std::string rendered(const std::vector<std::string>& messages, bool ask = true) {
  std::string text;
  for (const std::string& m : messages) text += "[" + m + "</s>";
  return ask ? text + "[" : text;
}

// Reads "</s>" as its special token where special tokens are parsed.
class Tokenizer final : public engine::Tokenizer {
 public:
  std::size_t piece_bytes_max() const override { return 8; }
  Tokens tokenize(std::string_view text, bool, bool parse_special) const override {
    Tokens out;
    while (!text.empty()) {
      const bool end = parse_special && text.starts_with("</s>");
      out.push_back(end ? FakeTokenizer::kEos : static_cast<unsigned char>(text.front()));
      text.remove_prefix(end ? 4 : 1);
    }
    return out;
  }
  std::string piece(Token token, bool special) const override {
    if (token == FakeTokenizer::kEos) return special ? "</s>" : "";
    return {static_cast<char>(token)};
  }
  bool is_end_of_generation(Token token) const override { return token == FakeTokenizer::kEos; }
  std::int32_t n_vocab() const override { return 500; }
};

class ContinuationTest : public testing::Test {
 protected:
  // The server has answered "A" with reasoning "hm" to the user's "U".
  void SetUp() override {
    Json body = Json::parse(R"({"messages":[{"role":"user","content":"U"}]})");
    const std::string prompt = rendered({"U"});
    session::Turn turn;
    turn.prompt_bytes = prompt.size();
    turn.prompt_digest = digest_of(prompt);
    turn.prompt = std::make_shared<const Tokens>(tokenizer.tokenize(prompt, false, true));
    turn.generated = {kSampled, kSampled + 1};
    turn.end_token = FakeTokenizer::kEos;
    turn.content = answer.content = "A";
    turn.reasoning = answer.reasoning = "hm";
    memory.remember(digest_after(conversation_digests({}, body).back(), answer), turn);
  }
  Json next(const char* assistant = R"({"role":"assistant","content":"A"})") const {
    return {{"messages", Json::array({Json{{"role", "user"}, {"content", "U"}}, Json::parse(assistant),
                                      Json{{"role", "user"}, {"content", "V"}}})}};
  }

  Tokenizer tokenizer;
  session::TurnMemory memory{{}};
  chat::Message answer;
};

TEST_F(ContinuationTest, B23_GoesOnFromTheExactTokens) {
  Json body = next();
  const Continuation continuation(&memory, {}, body);
  const auto tokens = continuation.tokens(rendered({"U", "hm A", "V"}), tokenizer);
  ASSERT_TRUE(tokens);
  Tokens expected = tokenizer.tokenize(rendered({"U"}), false, true);
  expected.insert(expected.end(), {kSampled, kSampled + 1});
  const Tokens rest = tokenizer.tokenize("</s>[V</s>[", false, true);
  expected.insert(expected.end(), rest.begin(), rest.end());
  EXPECT_EQ(*tokens, expected);
}

TEST_F(ContinuationTest, B23_ReasoningThatTheClientDroppedIsPutBackForTheTemplateToDecide) {
  Json body = next();
  const Continuation continuation(&memory, {}, body);
  EXPECT_EQ(body["messages"][1]["reasoning_content"], "hm");
}

TEST_F(ContinuationTest, B23_WhatTheTemplateDropsStaysDropped) {
  Json body = next();
  const Continuation continuation(&memory, {}, body);
  EXPECT_FALSE(continuation.tokens(rendered({"U", "A", "V"}), tokenizer)) << "it shows no reasoning";
}

TEST_F(ContinuationTest, B23_NotWhereTheClientChangedTheMeaning) {
  Json body = next(R"({"role":"assistant","content":"A!"})");
  const Continuation continuation(&memory, {}, body);
  EXPECT_EQ(continuation.n_found(), 0U);
  EXPECT_FALSE(body["messages"][1].contains("reasoning_content"));
  EXPECT_FALSE(continuation.tokens(rendered({"U", "hm A!", "V"}), tokenizer));
}

TEST_F(ContinuationTest, B23_NotWhereTheTemplateRendersTheBeginningAnew) {
  Json body = next();
  const Continuation continuation(&memory, {}, body);
  EXPECT_FALSE(continuation.tokens(rendered({"u", "hm A", "V"}), tokenizer));
  EXPECT_FALSE(continuation.tokens(rendered({"U"}, false), tokenizer));
  EXPECT_FALSE(continuation.tokens("", tokenizer));
}

TEST_F(ContinuationTest, B24_NeverAcrossNamespaces) {
  Json body = next();
  const Continuation continuation(&memory, NamespaceId{1}, body);
  EXPECT_EQ(continuation.n_found(), 0U);
}

TEST_F(ContinuationTest, WithoutMemoryNothingIsFoundButTheConversationIsKnown) {
  Json body = next();
  const Continuation continuation(nullptr, {}, body);
  EXPECT_EQ(continuation.n_found(), 0U);
  EXPECT_TRUE(continuation.conversation());
}

}  // namespace
}  // namespace coppice::api
