// The known beginning of the next prompt over the chat templates of llama.cpp's release, in random conversations.
#include <gtest/gtest.h>

#include <iostream>
#include <random>

#include "api/next_prompt.h"
#include "api/scripted_chat.h"
#include "chat/template_core.h"
#include "kv/prefix.h"

namespace coppice::api {
namespace {

// What users and tools say: with every kind of beginning that a tokenizer may take together with what stands before.
constexpr const char* kWords[] = {"And then?",    "  indented",
                                  "\nA new line", "\n\n\nmore of them",
                                  "42",           "<b>bold</b>",
                                  "{\"a\": [1]}", "[1, 2]",
                                  "'s",           "\xc3\xa9t\xc3\xa9",
                                  "...",          "<|not_a_token",
                                  "Some words.",  "Some words that go on.",
                                  "1, then 2",    "\t"};

class RandomChat : public ScriptedChat {
 public:
  RandomChat(const chat::Templates& templates, std::uint64_t seed)
      : ScriptedChat(templates, true, MarkupTokenizer(seed % 2 == 0)), rng_(seed) {
    reasoning_sent_ = chance(0.5);
  }

  // One turn, and what comes after it. Returns false if the template does not take it.
  bool step() {
    const bool calls = chance(0.6);
    const Json answer = intended(calls, chance(0.6));
    const Json asked = body;
    if (!take_turn(answer, chance(0.7))) return false;
    Json& said = body["messages"].back();
    const auto beginning = known_beginning(router().context()->services, NamespaceId{}, asked, message_of(said));
    if (!reasoning_sent_) said.erase("reasoning_content");
    reply(body["messages"], Json(said), word());
    check(beginning);
    return true;
  }

  int n_checked = 0, n_none = 0;

 private:
  bool chance(double p) { return std::bernoulli_distribution(p)(rng_); }
  std::string word() { return kWords[std::uniform_int_distribution<std::size_t>(0, std::size(kWords) - 1)(rng_)]; }

  static chat::Message message_of(const Json& json) {
    chat::Message out;
    if (json["content"].is_string()) out.content = json["content"];
    out.reasoning = json.value("reasoning_content", "");
    for (const Json& call : json.value("tool_calls", Json::array())) {
      out.tool_calls.push_back({call["id"], call["function"]["name"], call["function"]["arguments"]});
    }
    return out;
  }

  void check(const std::optional<Tokens>& beginning) {
    const auto next = whole();
    if (!next || !beginning) {
      ++n_none;
      EXPECT_TRUE(!next || !beginning);
      return;
    }
    const Tokens& prompt = next->prompts.front();
    ++n_checked;
    EXPECT_EQ(static_cast<std::size_t>(kv::common_prefix(*beginning, prompt)), beginning->size())
        << body.dump(1) << "\nprepared: " << tokenizer.text(*beginning, true)
        << "\nprompt: " << tokenizer.text(prompt, true);
  }

  std::mt19937_64 rng_;
  bool reasoning_sent_;
};

TEST(NextPromptTemplates, B25_WhatIsPreparedAlwaysBeginsTheNextPrompt) {
  int n_checked = 0;
  for (const auto& path : template_paths()) {
    SCOPED_TRACE(path.stem().string());
    auto templates =
        chat::make_templates_from_source(template_source(path), "<s>", "</s>", {.prefill_assistant = false});
    ASSERT_TRUE(templates) << templates.error().message;
    int checked = 0, none = 0;
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      RandomChat chat(**templates, seed);
      for (int i = 0; i < 4 && chat.step(); ++i) {
      }
      checked += chat.n_checked;
      none += chat.n_none;
    }
    std::cout << path.stem().string() << ": " << checked << " checked, " << none << " not known" << std::endl;
    n_checked += checked;
  }
  EXPECT_GT(n_checked, 68 * 6);
}

}  // namespace
}  // namespace coppice::api
