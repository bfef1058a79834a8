#include "chat/template_drift.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

#include "base/json.h"

namespace coppice::chat {
namespace {

constexpr std::size_t kWindowBytes = 60;

// An answer, and the words that say that all of it was rendered.
struct Said {
  Json message;
  std::string thought, last_words;
};

Said said(int n, bool calls, Reasoning reasoning) {
  const std::string number = std::to_string(n);
  Said out;
  out.last_words = (calls ? "City-" : "The answer is ") + number;
  out.message = {{"role", "assistant"}, {"content", calls ? "" : out.last_words}};
  if (reasoning != Reasoning::none) {
    out.thought = "Thought number " + number + ".";
    out.message["reasoning_content"] = out.thought;
  }
  if (!calls) return out;
  // Ids of nine characters, as some templates take no other.
  const Json function = {{"name", "get_weather"}, {"arguments", "{\"city\": \"" + out.last_words + "\"}"}};
  out.message["tool_calls"] =
      Json::array({{{"id", "abcdefgh" + number}, {"type", "function"}, {"function", function}}});
  return out;
}

Json result_of(int n) {
  const std::string number = std::to_string(n);
  return {
      {"role", "tool"}, {"tool_call_id", "abcdefgh" + number}, {"name", "get_weather"}, {"content", "Sun " + number}};
}

Json sample(Reasoning reasoning, bool calls_first) {
  Json body = {{"messages", Json::array({{{"role", "user"}, {"content", "Where is it warmer?"}}})}};
  if (!calls_first) {
    Json answer = said(1, false, reasoning).message;
    body["messages"].push_back(std::move(answer));
    body["messages"].push_back({{"role", "user"}, {"content", "Are you sure?"}});
    return body;
  }
  body["tools"] = Json::parse(R"([{"type": "function", "function": {"name": "get_weather", "description": "Weather.",
    "parameters": {"type": "object", "required": ["city"], "properties": {"city": {"type": "string"}}}}}])");
  for (int n = 1; n <= 2; ++n) {
    body["messages"].push_back(said(n, true, reasoning).message);
    body["messages"].push_back(result_of(n));
  }
  return body;
}

// What the engine has when `answer` has been given: the prompt and what the model wrote, as far as the template shows
// how it writes.
std::optional<std::string> held_text(const Templates& templates, Json body, const Said& answer) {
  auto prompt = templates.render_text(body);
  if (!prompt) return std::nullopt;
  body["messages"].push_back(answer.message);
  body["add_generation_prompt"] = false;
  const auto shown = templates.render_text(body);
  if (!shown) return std::nullopt;
  if (shown->starts_with(*prompt)) {
    const auto thought = shown->find(answer.thought, prompt->size());
    const auto end = shown->find(answer.last_words, prompt->size());
    if (thought != std::string::npos && end != std::string::npos)
      return shown->substr(0, end + answer.last_words.size());
  }
  return *prompt + answer.thought + answer.last_words;
}

// At most so many bytes before `at`, or from there on. The sample's own text is ASCII; a template's may not be.
std::string window_before(std::string_view text, std::size_t at) {
  std::size_t begin = at - std::min(at, kWindowBytes);
  while (begin < at && (static_cast<unsigned char>(text[begin]) & 0xC0U) == 0x80U) ++begin;
  return std::string(text.substr(begin, at - begin));
}
std::string window_after(std::string_view text, std::size_t at) {
  std::size_t end = std::min(text.size(), at + kWindowBytes);
  while (end < text.size() && end > at && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return std::string(text.substr(at, end - at));
}

// Where the word or tag begins that `at` stands in, so that both go on with something that can be read.
std::size_t word_begin(std::string_view text, std::size_t at) {
  constexpr std::string_view kTag = "<|[/_";
  constexpr std::size_t kBytesMax = 24;
  const auto within = [&](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || static_cast<unsigned char>(c) >= 0x80U ||
           kTag.find(c) != std::string_view::npos;
  };
  std::size_t begin = at;
  while (begin > 0 && at - begin < kBytesMax && within(text[begin - 1])) --begin;
  return begin;
}

Drift compare(std::string_view held, std::string_view next) {
  Drift out;
  out.rendered = true;
  out.held_bytes = held.size();
  std::size_t at = static_cast<std::size_t>(std::ranges::mismatch(held, next).in1 - held.begin());
  out.survives = at == held.size();
  out.kept_bytes = at;
  if (out.survives) return out;
  at = word_begin(held, at);
  out.before = window_before(held, at);
  out.held = window_after(held, at);
  out.next = window_after(next, at);
  return out;
}

void drop_reasoning(Json& messages) {
  for (Json& message : messages) message.erase("reasoning_content");
}

Drift probe(const Templates& templates, NextStep step, Reasoning reasoning, bool with_calls) {
  const bool calls = step == NextStep::tool_result;
  Json body = sample(reasoning, with_calls);
  const Said answer = said(3, calls, reasoning);
  if (reasoning == Reasoning::not_sent_back) drop_reasoning(body["messages"]);
  const auto held = held_text(templates, body, answer);
  body["messages"].push_back(answer.message);
  body["messages"].push_back(calls ? result_of(3) : Json{{"role", "user"}, {"content", "And in Turku?"}});
  if (reasoning == Reasoning::not_sent_back) drop_reasoning(body["messages"]);
  const auto next = templates.render_text(body);
  return held && next ? compare(*held, *next) : Drift{};
}

}  // namespace

bool TemplateDrift::drifts(NextStep step, bool puts_back) const {
  return std::ranges::any_of(kReasonings, [&](Reasoning reasoning) {
    const Drift& drift = at(step, reasoning);
    return drift.rendered && !drift.survives && (reasoning != Reasoning::not_sent_back || !puts_back);
  });
}

TemplateDrift probe_drift(const Templates& templates) {
  TemplateDrift out;
  for (const NextStep step : kNextSteps) {
    for (const Reasoning reasoning : kReasonings) {
      Drift& drift = out.cases[static_cast<std::size_t>(step)][static_cast<std::size_t>(reasoning)];
      drift = probe(templates, step, reasoning, true);
      // Templates without tools have conversations all the same.
      if (!drift.rendered && step == NextStep::user_message) drift = probe(templates, step, reasoning, false);
    }
  }
  return out;
}

}  // namespace coppice::chat
