// From a Chat Completions body to what the model is going to read: the template's text as tokens, those of answers of
// ours exactly as they were sampled.
#pragma once

#include <optional>

#include "api/continuation.h"
#include "api/services.h"
#include "api/turn_recorder.h"
#include "base/error.h"
#include "base/json_fwd.h"
#include "chat/chat.h"

namespace coppice::api {

struct RenderedChat {
  Tokens tokens;
  bool continued = false;  // they go on from the exact tokens of an answer of ours
  chat::Prompt prompt;
  std::optional<TurnSeed> turn;  // to remember the answer by, if it can be
};

// REQUIRES: `body` is normalised, and the one that `continuation` was made of. Errors: what the template refuses;
// context_overflow.
Result<RenderedChat> render_chat(const Services& services, const Continuation& continuation, const Json& body);

}  // namespace coppice::api
