#include "chat/late_system.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace coppice::chat {
namespace {

std::vector<common_chat_msg> messages_of(const std::vector<std::pair<std::string, std::string>>& turns) {
  std::vector<common_chat_msg> out;
  for (const auto& [role, content] : turns) {
    common_chat_msg message;
    message.role = role;
    message.content = content;
    out.push_back(message);
  }
  return out;
}

std::string shown(const std::vector<common_chat_msg>& messages) {
  std::string out;
  for (const common_chat_msg& message : messages)
    out.append(message.role).append(":").append(message.content).append("|");
  return out;
}

std::string adapted(LateSystem form, const std::vector<std::pair<std::string, std::string>>& turns) {
  auto messages = messages_of(turns);
  adapt_late_system(form, messages);
  return shown(messages);
}

TEST(LateSystem, StaysWhereItIs) {
  const std::vector<std::pair<std::string, std::string>> turns = {
      {"system", "S"}, {"developer", "T"}, {"user", "U"}, {"system", "L"},
      {"user", "V"},   {"assistant", "A"}, {"tool", "R"}, {"system", "M"}};
  EXPECT_EQ(adapted(LateSystem::native, turns),
            "system:S|developer:T|user:U|system:L|user:V|assistant:A|tool:R|system:M|");
  EXPECT_EQ(adapted(LateSystem::as_user, turns), "system:S\n\nT|user:U|user:L|user:V|assistant:A|tool:R|user:M|");
  EXPECT_EQ(adapted(LateSystem::merged_user, turns), "system:S\n\nT|user:U\n\nL\n\nV|assistant:A|tool:R|user:M|");
}

// Two user messages in a row that the client sent so are its own business.
TEST(LateSystem, MergesOnlyAroundASystemMessage) {
  EXPECT_EQ(adapted(LateSystem::merged_user, {{"user", "U"}, {"user", "V"}}), "user:U|user:V|");
  EXPECT_EQ(adapted(LateSystem::merged_user, {{"user", "U"}, {"system", "L"}}), "user:U\n\nL|");
}

TEST(LateSystem, TheProbeTakesTheFirstFormThatRenders) {
  const LateSystemProbe kept = probe_late_system(shown);
  EXPECT_EQ(kept.form, LateSystem::native);
  EXPECT_EQ(kept.fate, LateSystemFate::in_place);
  EXPECT_TRUE(kept.works);
  const auto no_system_later = [](const std::vector<common_chat_msg>& messages) {
    for (std::size_t i = 1; i < messages.size(); ++i) {
      if (messages[i].role == "system") throw std::runtime_error("system comes first");
    }
    return shown(messages);
  };
  EXPECT_EQ(probe_late_system(no_system_later).form, LateSystem::as_user);
  EXPECT_EQ(probe_late_system(no_system_later).fate, LateSystemFate::refused);
  const auto strict = [&](const std::vector<common_chat_msg>& messages) {
    for (std::size_t i = 1; i < messages.size(); ++i) {
      if (messages[i].role == messages[i - 1].role) throw std::runtime_error("roles must alternate");
    }
    return no_system_later(messages);
  };
  EXPECT_EQ(probe_late_system(strict).form, LateSystem::merged_user);
}

TEST(LateSystem, TheProbeTellsWhatTheTemplateDoesItself) {
  // Many templates take the system message from the first place alone and leave out all others.
  const auto drops_later = [](std::vector<common_chat_msg> messages) {
    std::erase_if(messages, [&, i = 0](const common_chat_msg& m) mutable { return m.role == "system" && i++ > 0; });
    return shown(messages);
  };
  EXPECT_EQ(probe_late_system(drops_later).fate, LateSystemFate::lost_or_moved);
  EXPECT_EQ(probe_late_system(drops_later).form, LateSystem::as_user);
  EXPECT_TRUE(probe_late_system(drops_later).works);

  const LateSystemProbe none = probe_late_system([](const auto&) -> std::string { throw std::runtime_error("no"); });
  EXPECT_EQ(none.form, LateSystem::native);
  EXPECT_EQ(none.fate, LateSystemFate::refused);
  EXPECT_FALSE(none.works);
  EXPECT_EQ(name(none.fate), "refused");
  EXPECT_EQ(name(LateSystem::merged_user), "user_merged");
}

}  // namespace
}  // namespace coppice::chat
