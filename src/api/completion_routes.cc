#include "api/completion_routes.h"

#include <memory>
#include <utility>

#include "api/chat_format.h"
#include "api/completion_draft.h"
#include "api/completion_plan.h"
#include "api/completions_format.h"
#include "api/native_format.h"

namespace coppice::api {

Result<CompletionPlan> plan_native(const Call& call) {
  auto draft = read_draft(call, ApiKind::native);
  if (!draft) return std::unexpected(draft.error());
  FormatFacts facts = make_facts(call.services(), *draft, "cmpl-");
  CompletionPlan plan = make_plan(*std::move(draft));
  // Streams name the tokens of each piece, and count them.
  plan.text.return_tokens = plan.generation.return_tokens || plan.generation.stream;
  plan.format = std::make_unique<NativeFormat>(std::move(facts));
  return plan;
}

Result<CompletionPlan> plan_completions(const Call& call) {
  auto draft = read_draft(call, ApiKind::completions);
  if (!draft) return std::unexpected(draft.error());
  FormatFacts facts = make_facts(call.services(), *draft, "cmpl-");
  CompletionPlan plan = make_plan(*std::move(draft));
  plan.format = std::make_unique<CompletionsFormat>(std::move(facts));
  return plan;
}

Result<CompletionPlan> plan_chat(const Call& call) {
  auto draft = read_draft(call, ApiKind::chat, Rendering::guess_first);
  if (!draft) return std::unexpected(draft.error());
  ChatPlan chat = make_chat_plan(call.services(), *std::move(draft), "chatcmpl-");
  chat.plan.format =
      std::make_unique<ChatFormat>(std::move(chat.facts), call.services().templates, std::move(chat.prompt));
  return std::move(chat.plan);
}

}  // namespace coppice::api
