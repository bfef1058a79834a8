#include "chat/plain_text.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace coppice::chat {
namespace {

std::string roles_of(const std::vector<common_chat_msg>& messages) {
  std::string out;
  for (const common_chat_msg& message : messages) out += message.role + ";";
  return out;
}

std::string refuse(const std::vector<common_chat_msg>&) { throw std::runtime_error("no"); }

TEST(RenderAlike, IsAboutEveryKindOfMessage) {
  EXPECT_TRUE(render_alike(roles_of, roles_of));
  const auto with_thoughts = [](const std::vector<common_chat_msg>& messages) {
    return roles_of(messages) + messages.back().reasoning_content + messages[messages.size() / 2].reasoning_content;
  };
  EXPECT_FALSE(render_alike(roles_of, with_thoughts));
  const auto with_calls = [](const std::vector<common_chat_msg>& messages) {
    std::string out = roles_of(messages);
    for (const common_chat_msg& message : messages) out += message.tool_calls.empty() ? "" : "call;";
    return out;
  };
  EXPECT_FALSE(render_alike(with_calls, roles_of));
}

TEST(RenderAlike, WhatOneRefusesTheOtherMustRefuse) {
  const auto refuses_calls = [](const std::vector<common_chat_msg>& messages) {
    return roles_of(messages).find("tool") == std::string::npos ? roles_of(messages) : refuse(messages);
  };
  EXPECT_TRUE(render_alike(refuses_calls, refuses_calls));
  EXPECT_FALSE(render_alike(refuses_calls, roles_of));
  EXPECT_FALSE(render_alike(roles_of, refuses_calls));
  EXPECT_FALSE(render_alike(refuse, refuse)) << "nothing was compared";
}

}  // namespace
}  // namespace coppice::chat
