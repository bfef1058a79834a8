// The tokens with which every chat begins that begins with these messages.
#pragma once

#include "api/services.h"
#include "base/error.h"
#include "base/json.h"

namespace coppice::api {

// `body` is a Chat Completions request. What follows the last message decides how its end is rendered and tokenized, so
// the conversation is rendered with two continuations, and their common beginning is taken. Where the template refuses
// those, or the body itself says how it ends (add_generation_prompt, continue_final_message), it is rendered as it is,
// without a generation prompt. Errors: as Templates::render; context_overflow.
Result<Tokens> stable_prefix(Json body, const Services& services);

}  // namespace coppice::api
