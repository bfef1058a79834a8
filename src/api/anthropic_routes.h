// What an Anthropic client asks for beside models: POST /v1/messages, POST /v1/messages/count_tokens, HEAD /api/hello.
#pragma once

#include "api/call.h"
#include "api/exchange.h"
#include "base/error.h"

namespace coppice::api {

Result<CompletionPlan> plan_messages(const Call& call);
Result<HttpResponse> count_message_tokens(const Call& call);
HttpResponse get_hello();

}  // namespace coppice::api
