#include "api/stable_prefix.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "api/normalise.h"
#include "api/prompts.h"
#include "base/json.h"

namespace coppice::api {
namespace {

constexpr const char* kGenerationPrompt = "add_generation_prompt";

bool has(const Json& object, const char* field) {
  const auto it = object.find(field);
  return it != object.end() && !it->is_null();
}

Result<Tokens> render(const Json& body, const Services& services) {
  auto prompt = services.templates.render(body);
  if (!prompt) return std::unexpected(prompt.error());
  return tokenize_chat(*prompt, services.tokenizer, services.model.n_ctx);
}

Json with_field(Json body, const char* field, Json value) {
  body[field] = std::move(value);
  return body;
}

Json with_message(Json body, Json message) {
  body["messages"].push_back(std::move(message));
  return with_field(std::move(body), kGenerationPrompt, false);
}

// The message that answers a call is the tool's; before a user's words, templates leave out reasoning that they keep
// before a tool's.
Json answer_to(const Json& message, const char* text) {
  const auto calls = message.find("tool_calls");
  if (calls == message.end() || !calls->is_array() || calls->empty()) return {{"role", "user"}, {"content", text}};
  const Json& call = calls->back();
  return {
      {"role", "tool"}, {"tool_call_id", call.is_object() ? call.value("id", Json("")) : Json("")}, {"content", text}};
}

// Two ways in which the conversation may go on: an answer comes after a user's or a tool's message, two different ones
// of those after any other. REQUIRES: the last message is an object.
std::array<Json, 2> continuations(const Json& body) {
  const Json& last = body["messages"].back();
  const Json role = last.value("role", Json());
  if (role == "user" || role == "tool") {
    return {with_field(body, kGenerationPrompt, true), with_field(body, kGenerationPrompt, false)};
  }
  return {with_message(body, answer_to(last, "Yes")), with_message(body, answer_to(last, "No"))};
}

bool can_continue(const Json& body) {
  // Whoever says how the conversation ends wants to have it so.
  if (has(body, kGenerationPrompt) || has(body, "continue_final_message")) return false;
  const auto messages = body.find("messages");
  return messages != body.end() && messages->is_array() && !messages->empty() && messages->back().is_object();
}

// Empty if the template does not take the continuations.
Tokens common_prefix(const std::array<Json, 2>& bodies, const Services& services) {
  auto one = render(bodies[0], services);
  if (!one) return {};
  const auto other = render(bodies[1], services);
  if (!other) return {};
  one->erase(std::ranges::mismatch(*one, *other).in1, one->end());
  return *std::move(one);
}

}  // namespace

Result<Tokens> stable_prefix(Json body, const Services& services) {
  normalise_chat(body);
  if (can_continue(body)) {
    if (Tokens common = common_prefix(continuations(body), services); !common.empty()) return common;
  }
  return render(has(body, kGenerationPrompt) ? body : with_field(body, kGenerationPrompt, false), services);
}

}  // namespace coppice::api
