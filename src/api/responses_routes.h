// OpenAI's Responses: POST /v1/responses, and what was stored of them under /v1/responses/{id}.
#pragma once

#include "api/call.h"
#include "api/completion_draft.h"
#include "api/exchange.h"
#include "api/http.h"
#include "base/error.h"

namespace coppice::api {

Result<CompletionPlan> plan_responses(const Call& call);

// The same request as what would run, for POST /v1/explain.
Result<CompletionDraft> read_responses_draft(const Call& call, const Json& body);

// {id}, or {id}/input_items with ?order=, ?limit=, ?after=.
Result<HttpResponse> get_response(const Call& call);

Result<HttpResponse> delete_response(const Call& call);

}  // namespace coppice::api
