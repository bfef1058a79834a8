// What every completion request says, whichever route it came by: what to evaluate, where, and how much to generate.
// POST /v1/explain reads the same draft, so that it explains what the request itself would do.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "api/cache_marks.h"
#include "api/call.h"
#include "api/chat_render.h"
#include "api/generation_fields.h"
#include "api/turn_recorder.h"
#include "base/error.h"
#include "base/json.h"
#include "chat/chat.h"
#include "sched/request.h"

namespace coppice::api {

// A guess and the whole rendering that it was checked against.
struct Confirmed {
  RenderedChat whole;
  bool as_guessed = false;
};

struct CompletionDraft {
  Json body;
  GenerationFields generation;
  sched::Placement placement;
  std::vector<Tokens> prompts;       // not empty, and each fits into the context
  std::optional<chat::Prompt> chat;  // for ApiKind::chat
  std::vector<CacheMark> marks;      // of the chat, those that say for how long
  std::optional<TurnSeed> turn;      // to remember the answer by, if it can be
  bool continued = false;            // the prompt goes on from the exact tokens of an answer of ours

  // Set when `prompts` and `chat` are a guess (api/chat_guess.h): renders the whole of `body`. What the answer says may
  // be looked at only afterwards.
  std::function<Result<Confirmed>(const Json& body)> confirm;
};

// Whether a draft may begin with a guess: only one that is to be run.
enum class Rendering : std::uint8_t { whole, guess_first };

// Errors: invalid_request naming the field; context_overflow.
Result<CompletionDraft> read_draft(const Call& call, ApiKind api, Rendering rendering = Rendering::whole);

// For a caller that has to look at the body to know the kind. REQUIRES: `body` came from parse_body.
Result<CompletionDraft> read_draft(const Call& call, ApiKind api, Json body, Rendering rendering = Rendering::whole);

}  // namespace coppice::api
