#include "api/chat_guess.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "api/message_role.h"
#include "base/json.h"

namespace coppice::api {
namespace {

// With fewer messages the whole is rendered as fast as its parts.
constexpr std::size_t kMessagesMin = 5;

// Where messages begin that the template may look back to from message `turn` on: the answer before it, so that the
// results of its calls come with it.
std::size_t lead_begin(const Json& messages, std::size_t turn) {
  for (std::size_t i = turn; i-- > 0;) {
    if (role_of(messages[i]) == "assistant" || role_of(messages[i]) == "user") return i;
  }
  return 0;
}

// The conversation up to message `turn` in few messages: how it begins, its last question, and what leads to the turn.
Json shortened(const Json& messages, std::size_t turn) {
  const std::size_t lead = lead_begin(messages, turn);
  std::size_t head = 0;  // up to the first question
  while (head < lead && role_of(messages[head]) != "user") ++head;
  head = std::min(head + 1, lead);
  std::size_t question = lead;  // the last one before `lead`
  while (question > head && role_of(messages[question - 1]) != "user") --question;
  Json out(messages.begin(), messages.begin() + static_cast<std::ptrdiff_t>(head));
  if (question > head) out.push_back(messages[question - 1]);
  for (std::size_t i = lead; i < turn; ++i) out.push_back(messages[i]);
  return out;
}

// The fields that shape a rendering, but for the tools: what is told of them stands at the beginning, and rendering
// them is most of the work on a short conversation.
Json without_messages(const Json& body) {
  Json out = Json::object();
  for (const auto& [name, value] : body.items()) {
    if (name != "messages" && name != "tools" && name != "tool_choice") out[name] = value;
  }
  return out;
}

// The text from the end of message `turn` on.
std::optional<std::string> tail_text(const Services& services, const Json& body, const Continuation::Found& found) {
  const Json& messages = body["messages"];
  Json few = without_messages(body);
  few["messages"] = shortened(messages, found.message);
  const auto before = services.templates.render_text(few);
  if (!before) return std::nullopt;
  for (std::size_t i = found.message; i < messages.size(); ++i) few["messages"].push_back(messages[i]);
  auto with = services.templates.render_text(few);
  if (!with || !with->starts_with(*before)) return std::nullopt;
  const std::string end = services.tokenizer.piece(found.turn->end_token, true);
  const std::size_t at = end.empty() ? std::string::npos : with->find(end, before->size());
  if (at == std::string::npos) return std::nullopt;
  // A template that drops something of the turn, its reasoning say, does not go on from its tokens.
  if (!shows(std::string_view(*with).substr(before->size(), at - before->size()), *found.turn)) return std::nullopt;
  return with->substr(at);
}

}  // namespace

Digest output_kind(NamespaceId ns, const Json& body) {
  const Digest shape = answer_shape_digest(ns, body);
  std::string bytes(reinterpret_cast<const char*>(shape.data()), shape.size());
  // What a template puts before an answer differs between a question's and a tool result's.
  if (const Json& messages = body["messages"]; !messages.empty()) bytes += role_of(messages.back());
  return digest_of(bytes);
}

std::optional<RenderedChat> guess_chat(const Services& services, OutputRules& rules, const Continuation& continuation,
                                       const Digest& kind, const Json& body) {
  const auto found = continuation.latest();
  if (!found || body["messages"].size() < kMessagesMin) return std::nullopt;
  const auto kept = rules.find(kind);
  if (kept == nullptr) return std::nullopt;
  const auto tail = tail_text(services, body, *found);
  if (!tail) return std::nullopt;
  auto tokens = tokens_from(*found->turn, *tail, services.tokenizer);
  if (!tokens) return std::nullopt;
  return RenderedChat{.tokens = *std::move(tokens), .continued = true, .prompt = *kept, .turn = std::nullopt};
}

bool same_request(const RenderedChat& guess, const RenderedChat& whole) {
  return guess.tokens == whole.tokens && guess.prompt.stops == whole.prompt.stops &&
         guess.prompt.one_call == whole.prompt.one_call && guess.prompt.constraint == whole.prompt.constraint;
}

}  // namespace coppice::api
