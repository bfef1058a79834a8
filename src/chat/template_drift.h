// Whether the prompt of a conversation's next turn begins with what was computed for the turn before, or whether the
// template renders the past anew ("drift"): many drop the reasoning of earlier answers once the user speaks again.
// Whatever does not go on from the tokens that are held is computed again by a prefix cache; see docs/idle-prefill.md.
// Pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "chat/chat.h"

namespace coppice::chat {

// What comes next.
enum class NextStep : std::uint8_t { tool_result, user_message };
// What the conversation's answers have of reasoning, and whether the client sends it back.
enum class Reasoning : std::uint8_t { sent_back, not_sent_back, none };

inline constexpr std::array kNextSteps = {NextStep::tool_result, NextStep::user_message};
inline constexpr std::array kReasonings = {Reasoning::sent_back, Reasoning::not_sent_back, Reasoning::none};

// How a sample conversation goes on: a question and two tool calls with their results; before `user_message` an answer
// too.
struct Drift {
  bool rendered = false;  // false: the template does not take it, and nothing else here means anything
  bool survives = false;  // the next prompt begins with the last prompt and all of its answer
  // Of the text that was computed for the last turn, and how much of it the next prompt begins with.
  std::size_t held_bytes = 0, kept_bytes = 0;
  // Where they part, if they do: the text before it, and what follows in either.
  std::string before, held, next;
};

struct TemplateDrift {
  std::array<std::array<Drift, kReasonings.size()>, kNextSteps.size()> cases;
  const Drift& at(NextStep step, Reasoning reasoning) const {
    return cases[static_cast<std::size_t>(step)][static_cast<std::size_t>(reasoning)];
  }
  // Whether the step loses something, for a server that puts back the reasoning that clients leave out, or not.
  bool drifts(NextStep step, bool puts_back) const;
};

// `templates`: made with TemplateSettings::prefill_assistant off, as it asks for conversations that end in an answer.
TemplateDrift probe_drift(const Templates& templates);

}  // namespace coppice::chat
