#include "api/any_draft.h"

#include <utility>

#include "api/anthropic_request.h"
#include "api/fields.h"
#include "api/json_text.h"
#include "api/responses_routes.h"

namespace coppice::api {

Result<Json> parse_any_body(const Call& call) {
  auto body = parse_body(call.http.body);
  if (body && !call.http.header("anthropic-version").empty()) return anthropic_to_chat(*body, AnthropicCall::count);
  return body;
}

Result<CompletionDraft> read_any_draft(const Call& call, Json body) {
  const FieldReader in(body);
  const bool is_chat = in.find("messages") != nullptr;
  const bool is_responses = !is_chat && in.find("prompt") == nullptr && in.find("input") != nullptr;
  auto draft = is_responses ? read_responses_draft(call, body)
                            : read_draft(call, is_chat ? ApiKind::chat : ApiKind::native, std::move(body));
  if (draft && draft->prompts.size() > 1) {
    return invalid("'prompt' is a list of several prompts; this takes one at a time", "prompt");
  }
  return draft;
}

}  // namespace coppice::api
