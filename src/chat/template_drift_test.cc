#include "chat/template_drift.h"

#include <gtest/gtest.h>

#include <iostream>

#include "chat/chat_test_support.h"

namespace coppice::chat {
namespace {

TEST(TemplateDrift, B25_Qwen3DropsItsReasoningWhenTheUserSpeaks) {
  const TemplateDrift drift = probe_drift(*testing::probe_templates_of(testing::template_text("Qwen-Qwen3-0.6B")));
  EXPECT_TRUE(drift.at(NextStep::tool_result, Reasoning::sent_back).survives);
  const Drift& user = drift.at(NextStep::user_message, Reasoning::sent_back);
  EXPECT_TRUE(user.rendered);
  EXPECT_FALSE(user.survives);
  EXPECT_LT(user.kept_bytes, user.held_bytes);
  EXPECT_TRUE(user.before.ends_with("<|im_start|>assistant\n")) << user.before;
  EXPECT_TRUE(user.held.starts_with("<think>\nThought number 1.")) << user.held;
  EXPECT_TRUE(user.next.starts_with("<tool_call>")) << user.next;
  EXPECT_TRUE(drift.drifts(NextStep::user_message, true));
  EXPECT_FALSE(drift.at(NextStep::tool_result, Reasoning::not_sent_back).survives);
  EXPECT_FALSE(drift.at(NextStep::tool_result, Reasoning::none).survives) << "the empty thought is left out";
  EXPECT_TRUE(drift.drifts(NextStep::tool_result, true));
}

TEST(TemplateDrift, B25_ATemplateThatKeepsAllSurvives) {
  const auto templates = testing::probe_templates_of(
      "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% for c in m.tool_calls or [] %}{{ c.function.arguments "
      "}}{% endfor %}<end>{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}");
  const TemplateDrift drift = probe_drift(*templates);
  EXPECT_TRUE(drift.at(NextStep::user_message, Reasoning::none).survives);
  EXPECT_TRUE(drift.at(NextStep::tool_result, Reasoning::none).survives);
  EXPECT_FALSE(drift.at(NextStep::user_message, Reasoning::sent_back).survives) << "it shows no reasoning";
}

TEST(TemplateDrift, B25_OfTheReleasesTemplatesAsManyDriftAsWasFound) {
  int user = 0, tool = 0, n = 0;
  for (const auto& entry : std::filesystem::directory_iterator(COPPICE_TEMPLATE_DIR)) {
    if (entry.path().extension() != ".jinja") continue;
    const auto templates = testing::probe_templates_of(testing::read_text(entry.path()));
    ASSERT_NE(templates, nullptr);
    const TemplateDrift drift = probe_drift(*templates);
    EXPECT_TRUE(drift.at(NextStep::user_message, Reasoning::none).rendered) << entry.path();
    const bool drifts[] = {drift.drifts(NextStep::tool_result, true), drift.drifts(NextStep::user_message, true)};
    std::cout << entry.path().stem().string() << ": " << (drifts[0] ? "tool results " : "")
              << (drifts[1] ? "user messages" : "") << std::endl;
    tool += drifts[0] ? 1 : 0;
    user += drifts[1] ? 1 : 0;
    ++n;
  }
  std::cout << n << " templates, drift at tool results: " << tool << ", at user messages: " << user << std::endl;
  EXPECT_GT(user, n / 4);
  EXPECT_LT(tool, user);
}

}  // namespace
}  // namespace coppice::chat
