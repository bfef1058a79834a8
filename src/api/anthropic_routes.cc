#include "api/anthropic_routes.h"

#include <memory>
#include <optional>
#include <utility>

#include "api/anthropic_format.h"
#include "api/anthropic_request.h"
#include "api/completion_draft.h"
#include "api/completion_plan.h"
#include "api/errors.h"
#include "api/fields.h"
#include "api/json_text.h"
#include "api/normalise.h"
#include "api/prompts.h"

namespace coppice::api {
namespace {

Result<Json> read_chat_body(const Call& call, AnthropicCall kind) {
  auto body = parse_body(call.http.body);
  if (!body) return std::unexpected(body.error());
  return anthropic_to_chat(*body, kind);
}

// The answer's "diagnostics": null when the earlier request is a beginning of this one.
Json diagnostics_json(const TurnComparison& found) {
  const auto reason = [](const char* type) { return Json{{"cache_miss_reason", {{"type", type}}}}; };
  const auto changed = [&](const char* type) {
    Json out = reason(type);
    out["cache_miss_reason"]["cache_missed_input_tokens"] = found.missed_tokens;
    return out;
  };
  switch (found.change) {
    case TurnChange::none: return nullptr;
    case TurnChange::model: return changed("model_changed");
    case TurnChange::system: return changed("system_changed");
    case TurnChange::tools: return changed("tools_changed");
    case TurnChange::messages: return changed("messages_changed");
    case TurnChange::settings: return reason("unavailable");
    case TurnChange::not_found: return reason("previous_message_not_found");
  }
  return nullptr;
}

// Remembers the turn under its answer's `id`. Nothing when the request does not ask what has changed.
Result<std::optional<Json>> diagnose(const Call& call, const CompletionDraft& draft, const std::string& id) {
  FieldReader in(draft.body);
  const Json* asked = in.find("diagnostics");
  std::string previous;
  if (asked != nullptr && asked->is_object()) {
    FieldReader nested(*asked, "diagnostics.");
    previous = nested.string("previous_message_id", kWordBytesMax);
    if (nested.error()) return std::unexpected(*nested.error());
  } else if (asked != nullptr) {
    in.fail("diagnostics", "must be an object");
    return std::unexpected(*in.error());
  }
  TurnDigestMemory& turns = call.context.turn_digests;
  TurnDigests now = digest_turn(draft.body, draft.prompts.front().size());
  if (!previous.empty()) return diagnostics_json(turns.follow(draft.placement.ns, previous, id, std::move(now)));
  turns.remember(draft.placement.ns, id, std::move(now));
  return asked == nullptr ? std::nullopt : std::optional(Json(nullptr));
}

}  // namespace

Result<CompletionPlan> plan_messages(const Call& call) {
  const Services& services = call.services();
  auto chat = read_chat_body(call, AnthropicCall::create);
  if (!chat) return std::unexpected(chat.error());
  auto draft = read_draft(call, ApiKind::chat, *std::move(chat), Rendering::guess_first);
  if (!draft) return std::unexpected(draft.error());
  draft->generation.return_progress = true;  // message_start waits for the counts that come with it
  const bool cache_prompt = draft->placement.cache_prompt;
  FormatFacts facts = make_facts(services, *draft, "msg_");
  auto diagnostics = diagnose(call, *draft, facts.id);
  if (!diagnostics) return std::unexpected(diagnostics.error());
  ChatPlan chat_plan = make_chat_plan(services, *std::move(draft), std::move(facts));
  chat_plan.plan.format = std::make_unique<AnthropicFormat>(std::move(chat_plan.facts), services.templates,
                                                            chat_plan.prompt, cache_prompt, *std::move(diagnostics));
  return std::move(chat_plan.plan);
}

Result<HttpResponse> count_message_tokens(const Call& call) {
  auto chat = read_chat_body(call, AnthropicCall::count);
  if (!chat) return std::unexpected(chat.error());
  normalise_chat(*chat);
  const Services& services = call.services();
  auto prompt = services.templates.render(*chat);
  if (!prompt) return std::unexpected(prompt.error());
  // Not read_draft(): how much a conversation is over the limit is worth knowing too.
  auto tokens = tokenize_chat(*prompt, services.tokenizer, services.model.n_ctx);
  if (!tokens) return std::unexpected(tokens.error());
  return json_response({{"input_tokens", tokens->size()}});
}

HttpResponse get_hello() { return json_response({{"status", "ok"}}); }

}  // namespace coppice::api
