// Shared by the tests of this folder.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "chat/template_core.h"

namespace coppice::chat::testing {

inline std::string read_text(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// The text of a template of llama.cpp's collection; `name` without ".jinja".
inline std::string template_text(const std::string& name) {
  return read_text(std::filesystem::path(COPPICE_TEMPLATE_DIR) / (name + ".jinja"));
}

// Settings whose call ids count up: call_0, call_1, ...
inline TemplateSettings counting_ids() {
  TemplateSettings settings;
  settings.make_call_id = [n = std::make_shared<int>(0)] {
    return std::string("call_").append(std::to_string((*n)++));
  };
  return settings;
}

inline std::unique_ptr<Templates> templates_of(const std::string& source, TemplateSettings settings = counting_ids()) {
  auto made = make_templates_from_source(source, "<s>", "</s>", std::move(settings));
  EXPECT_TRUE(made.has_value()) << made.error().message;
  return made ? *std::move(made) : nullptr;
}

// For probe_drift().
inline std::unique_ptr<Templates> probe_templates_of(const std::string& source) {
  return templates_of(source, {.prefill_assistant = false});
}

// A template with tool calls, thinking and nothing else peculiar.
inline const Templates& qwen() {
  static const auto made = templates_of(template_text("Qwen-Qwen3-0.6B"));
  return *made;
}

inline Prompt must_render(const Templates& templates, const Json& body) {
  auto prompt = templates.render(body);
  EXPECT_TRUE(prompt.has_value()) << prompt.error().message << " (" << prompt.error().param << ")";
  return prompt ? *prompt : Prompt{};
}

// A conversation of one user message.
inline Json ask(const std::string& text, const Json& more = Json::object()) {
  Json body = {{"messages", Json::array({{{"role", "user"}, {"content", text}}})}};
  body.update(more);
  return body;
}

inline Json weather_tools() {
  return Json::parse(R"([
    {"type":"function","function":{"name":"get_weather","description":"Weather of a city.",
      "parameters":{"type":"object","required":["city"],
        "properties":{"city":{"type":"string"},"days":{"type":"integer"}}}}},
    {"type":"function","function":{"name":"get_time",
      "parameters":{"type":"object","properties":{"zone":{"type":"string"}}}}}
  ])");
}

// Puts deltas together again, as a client does.
class Assembled {
 public:
  void add(const std::vector<MessageDelta>& deltas) {
    for (const MessageDelta& delta : deltas) {
      EXPECT_TRUE(delta.reasoning.empty() || message.content.empty()) << "a thought after the answer has begun";
      message.content += delta.content;
      message.reasoning += delta.reasoning;
      if (!delta.tool_index) continue;
      if (*delta.tool_index == message.tool_calls.size()) {
        EXPECT_FALSE(delta.tool_name.empty());
        EXPECT_FALSE(delta.tool_id.empty());
        message.tool_calls.push_back({delta.tool_id, delta.tool_name, {}});
      } else {
        ASSERT_LT(*delta.tool_index, message.tool_calls.size());
        EXPECT_TRUE(delta.tool_name.empty() && delta.tool_id.empty()) << "a call was announced twice";
      }
      message.tool_calls[*delta.tool_index].arguments += delta.tool_arguments;
    }
  }
  Message message;
};

inline std::string describe(const Message& message, bool with_ids = false) {
  std::string out = "reasoning[";
  out.append(message.reasoning).append("] content[").append(message.content).append("]");
  for (const ToolCall& call : message.tool_calls) {
    out += ' ';
    if (with_ids) out.append(call.id).append(":");
    out.append(call.name).append("(").append(call.arguments).append(")");
  }
  return out;
}

// Feeds `output` in the given pieces and checks that what was streamed is what the message says at the end.
inline Message parse_pieces(const Templates& templates, const Prompt& prompt, const std::vector<std::string>& pieces) {
  const auto parser = templates.make_parser(prompt);
  Assembled assembled;
  for (const std::string& piece : pieces) {
    assembled.add(parser->feed(piece, false));
    EXPECT_EQ(describe(assembled.message, true), describe(parser->message(), true));
  }
  assembled.add(parser->feed("", true));
  EXPECT_EQ(describe(assembled.message, true), describe(parser->message(), true));
  return parser->message();
}

inline Message parse_whole(const Templates& templates, const Prompt& prompt, const std::string& output) {
  return parse_pieces(templates, prompt, {output});
}

inline std::vector<std::string> pieces_of(const std::string& text, std::size_t bytes) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at < text.size(); at += bytes) out.push_back(text.substr(at, bytes));
  return out;
}

}  // namespace coppice::chat::testing
