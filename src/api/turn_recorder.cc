#include "api/turn_recorder.h"

#include <prometheus/gauge.h>

#include <utility>

#include "api/conversation.h"
#include "api/format.h"
#include "api/services.h"

namespace coppice::api {

void remember_turn(const Services& services, const TurnSeed& seed, const sched::Placement& placement,
                   const Answer& answer, const chat::Message& message, std::vector<std::string> ids) {
  if (services.turns == nullptr || !answer.end_token || !placement.cache_prompt) return;
  session::Turn turn;
  turn.ns = placement.ns;
  turn.session = placement.session.empty() && !ids.empty() ? ids.front() : placement.session;
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

}  // namespace coppice::api
