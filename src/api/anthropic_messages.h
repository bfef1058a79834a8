// The messages part of anthropic_request.h.
#pragma once

#include "base/error.h"
#include "base/json_fwd.h"

namespace coppice::api {

// The chat messages of an Anthropic request's "system" and "messages". Text keeps the form in which it came, a string
// or text parts; normalise_chat() makes both equal. Errors: invalid_request naming the field.
Result<Json> anthropic_messages_to_chat(const Json& body);

}  // namespace coppice::api
