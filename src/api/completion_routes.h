// The routes that generate: POST /completion, /v1/completions, /v1/chat/completions. Each reads its request into a
// CompletionPlan; the exchange does the rest.
#pragma once

#include "api/call.h"
#include "api/exchange.h"
#include "base/error.h"

namespace coppice::api {

Result<CompletionPlan> plan_native(const Call& call);
Result<CompletionPlan> plan_completions(const Call& call);
Result<CompletionPlan> plan_chat(const Call& call);

}  // namespace coppice::api
