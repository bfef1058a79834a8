// The routes that generate: POST /completion, /v1/completions, /v1/chat/completions. Each reads its request into a
// CompletionPlan; the exchange does the rest.
#pragma once

#include <memory>

#include "api/context.h"
#include "api/exchange.h"
#include "api/http.h"

namespace coppice::api {

Result<CompletionPlan> plan_native(const Context& context, const HttpRequest& request, std::string_view key);
Result<CompletionPlan> plan_completions(const Context& context, const HttpRequest& request, std::string_view key);
Result<CompletionPlan> plan_chat(const Context& context, const HttpRequest& request, std::string_view key);

}  // namespace coppice::api
