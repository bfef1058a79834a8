#include "api/turn_recorder.h"

#include <prometheus/gauge.h>

#include <utility>

#include "api/context.h"
#include "api/conversation.h"
#include "api/format.h"
#include "api/message_role.h"
#include "base/json.h"

namespace coppice::api {

namespace {

// A conversation without a session gets one, named by what its answer is known by.
std::string session_of(const sched::Placement& placement, const std::vector<std::string>& ids) {
  return placement.session.empty() && !ids.empty() ? ids.front() : placement.session;
}

bool is_wanted(const IdlePrefill& server, const GenerationFields& request, bool calls) {
  if (!server.allowed) return false;
  return request.idle_prefill.value_or(calls ? server.after_calls : server.after_answers);
}

}  // namespace

void remember_turn(const Services& services, const TurnSeed& seed, const sched::Placement& placement,
                   const Answer& answer, const chat::Message& message, std::vector<std::string> ids) {
  if (services.turns == nullptr || !answer.end_token || !placement.cache_prompt) return;
  session::Turn turn;
  turn.ns = placement.ns;
  turn.session = session_of(placement, ids);
  turn.prompt_bytes = seed.prompt_bytes;
  turn.prompt_digest = seed.prompt_digest;
  turn.prompt = answer.prompt;
  turn.generated = answer.generated;
  turn.end_token = *answer.end_token;
  turn.content = message.content;
  turn.reasoning = message.reasoning;
  for (const chat::ToolCall& call : message.tool_calls) turn.calls.push_back({call.id, call.name, call.arguments});
  turn.ids = std::move(ids);
  services.turns->remember(digest_after(seed.conversation, message), std::move(turn));
  services.metrics.turns_remembered.Set(static_cast<double>(services.turns->size()));
  services.metrics.turns_remembered_bytes.Set(static_cast<double>(services.turns->bytes()));
}

void prepare_next_turn(const Context& context, const GenerationFields& generation, const sched::Placement& placement,
                       const Answer& answer, const chat::Message& message, const std::vector<std::string>& ids,
                       Json body) {
  if (!is_wanted(context.services.idle_prefill, generation, !message.tool_calls.empty())) return;
  // What was cut off is asked for again or given up, and what is to leave no trace leaves none here either.
  if (answer.stop == sched::StopKind::length || !placement.cache_prompt) return;
  // The beginning of an answer was given: who sends it back makes one message of both.
  const Json& messages = body["messages"];
  if (messages.empty() || role_of(messages.back()) == "assistant") return;
  Tokens held = *answer.prompt;
  held.insert(held.end(), answer.generated.begin(), answer.generated.end());
  context.next_turns.add({.ns = placement.ns,
                          .session = session_of(placement, ids),
                          .body = std::move(body),
                          .answer = message,
                          .held = std::move(held)});
}

}  // namespace coppice::api
