// Remembers what was answered, so that the conversation can be continued exactly and its ids lead back to it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "chat/chat.h"
#include "sched/request.h"
#include "session/turn_memory.h"

namespace coppice::api {

struct Answer;
struct Context;
struct GenerationFields;
struct Services;

// What is known of a turn before it is answered.
struct TurnSeed {
  session::Digest conversation{};  // of all messages, see conversation_digests()
  std::size_t prompt_bytes = 0;    // of the rendered prompt
  session::Digest prompt_digest{};
};

// Only an answer that the model itself ended is remembered: one that was cut off is no turn that a template could show.
// Nothing is kept of requests that asked for no trace (cache_prompt: false). A conversation without a session gets one,
// named by the answer's first id. REQUIRES: the answer is finished; services.turns.
void remember_turn(const Services& services, const TurnSeed& seed, const sched::Placement& placement,
                   const Answer& answer, const chat::Message& message, std::vector<std::string> ids);

// Hands the turn on to context.next_turns if the next prompt's beginning is to be prepared: if the server and the
// request want it, and if the answer has come to an end of its own. `body`: as it was rendered. REQUIRES: as
// remember_turn().
void prepare_next_turn(const Context& context, const GenerationFields& generation, const sched::Placement& placement,
                       const Answer& answer, const chat::Message& message, const std::vector<std::string>& ids,
                       Json body);

}  // namespace coppice::api
