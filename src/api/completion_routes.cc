#include "api/completion_routes.h"

#include <atomic>
#include <memory>
#include <random>
#include <utility>

#include "api/chat_format.h"
#include "api/completion_draft.h"
#include "api/completions_format.h"
#include "api/native_format.h"

namespace coppice::api {
namespace {

// Unlike any other response's, in this process and most likely in all others.
std::string make_id(std::string_view prefix) {
  static const std::uint64_t process = [] {
    std::random_device device;
    return (std::uint64_t{device()} << 32U) | device();
  }();
  static std::atomic<std::uint64_t> count{0};
  std::string id(prefix);
  for (const std::uint64_t part : {process, ++count}) {
    for (int shift = 60; shift >= 0; shift -= 4) id += "0123456789abcdef"[(part >> shift) & 0xFU];
  }
  return id;
}

FormatFacts make_facts(const Services& services, const CompletionDraft& draft, std::string_view id_prefix) {
  const sched::Placement& placement = draft.placement;
  return {.id = make_id(id_prefix),
          .created_unix_s = services.unix_time_s(),
          .model = services.model.id,
          .build = services.model.build,
          .n_ctx = services.model.n_ctx,
          .session = {placement.session, placement.session_rule, placement.parent_session, draft.continued},
          .generation = draft.generation,
          .tokenizer = services.tokenizer};
}

// All but the format.
CompletionPlan make_plan(CompletionDraft draft) {
  CompletionPlan plan;
  plan.prompts = std::move(draft.prompts);
  plan.placement = std::move(draft.placement);
  plan.text.stop = draft.generation.stop;
  plan.generation = std::move(draft.generation);
  plan.body = std::move(draft.body);
  plan.turn = std::move(draft.turn);
  return plan;
}

}  // namespace

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
  const Services& services = call.services();
  auto draft = read_draft(call, ApiKind::chat);
  if (!draft) return std::unexpected(draft.error());
  FormatFacts facts = make_facts(services, *draft, "chatcmpl-");
  chat::Prompt prompt = *std::move(draft->chat);
  CompletionPlan plan = make_plan(*std::move(draft));
  plan.text.stop.insert(plan.text.stop.end(), prompt.stops.begin(), prompt.stops.end());
  for (const std::string& word : prompt.constraint.preserved_tokens) {
    // Words of several tokens are plain text and need no help.
    if (const Tokens ids = services.tokenizer.tokenize(word, false, true); ids.size() == 1) {
      plan.text.visible.insert(ids.front());
    }
  }
  plan.constraint = prompt.constraint;
  plan.format = std::make_unique<ChatFormat>(std::move(facts), services.templates, std::move(prompt));
  return plan;
}

}  // namespace coppice::api
