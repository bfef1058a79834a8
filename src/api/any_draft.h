// A completion request of whichever API, from a route that takes them all: which one a body is for shows in how it says
// its prompt ('messages', 'input', 'prompt') and in Anthropic's header.
#pragma once

#include "api/call.h"
#include "api/completion_draft.h"
#include "base/error.h"
#include "base/json_fwd.h"

namespace coppice::api {

// The call's body as JSON; Anthropic's as a Chat Completions body. Errors: invalid_request.
Result<Json> parse_any_body(const Call& call);

// REQUIRES: `body` came from parse_any_body. Errors: as read_draft; more prompts than one.
Result<CompletionDraft> read_any_draft(const Call& call, Json body);

}  // namespace coppice::api
