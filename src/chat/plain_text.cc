#include "chat/plain_text.h"

#include <array>
#include <exception>
#include <optional>
#include <utility>

namespace coppice::chat {
namespace {

common_chat_msg said(std::string role, std::string content) {
  common_chat_msg out;
  out.role = std::move(role);
  out.content = std::move(content);
  return out;
}

common_chat_msg called(std::string id, std::string content, std::string reasoning) {
  common_chat_msg out = said("assistant", std::move(content));
  out.reasoning_content = std::move(reasoning);
  out.tool_calls.push_back({.name = "look_up", .arguments = R"({"name": "Turku", "n": 2})", .id = id});
  return out;
}

common_chat_msg result(std::string id, std::string content) {
  common_chat_msg out = said("tool", std::move(content));
  out.tool_name = "look_up";
  out.tool_call_id = std::move(id);
  return out;
}

using Messages = std::vector<common_chat_msg>;

// Ids of nine characters, as some templates take no other.
std::array<Messages, 5> conversations() {
  const auto system = said("system", "Some rules."), question = said("user", "A question?");
  common_chat_msg thought = said("assistant", "An answer.");
  thought.reasoning_content = "A thought.";
  const auto call = called("abcdefgh1", "", ""), more = called("abcdefgh2", "With words.", "Another thought.");
  return {
      Messages{question},
      Messages{system, question, said("assistant", "An answer."), question},
      Messages{system, question, thought, question},
      Messages{system, question, call, result("abcdefgh1", "A result."), more, result("abcdefgh2", R"({"a": 1})")},
      Messages{question, call, result("abcdefgh1", "[1, 2]"), thought, question},
  };
}

std::optional<std::string> try_render(const RenderMessages& render, const Messages& messages) {
  try {
    return render(messages);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace

bool render_alike(const RenderMessages& one, const RenderMessages& other) {
  bool any = false;
  for (const Messages& messages : conversations()) {
    const auto text = try_render(one, messages);
    if (text != try_render(other, messages)) return false;
    any = any || text.has_value();
  }
  return any;
}

}  // namespace coppice::chat
