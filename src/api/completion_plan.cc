#include "api/completion_plan.h"

#include <atomic>
#include <random>
#include <utility>

#include "base/hex.h"

namespace coppice::api {

std::string make_id(std::string_view prefix) {
  static const std::uint64_t process = [] {
    std::random_device device;
    return (std::uint64_t{device()} << 32U) | device();
  }();
  static std::atomic<std::uint64_t> count{0};
  return std::string(prefix) + to_hex(process) + to_hex(++count);
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

CompletionPlan make_plan(CompletionDraft draft) {
  CompletionPlan plan;
  plan.prompts = std::move(draft.prompts);
  plan.placement = std::move(draft.placement);
  plan.text.stop = draft.generation.stop;
  plan.generation = std::move(draft.generation);
  plan.body = std::move(draft.body);
  plan.turn = std::move(draft.turn);
  plan.confirm = std::move(draft.confirm);
  return plan;
}

void set_output_rules(const chat::Prompt& prompt, const Services& services, CompletionPlan& plan) {
  plan.text.stop = plan.generation.stop;
  plan.text.stop.insert(plan.text.stop.end(), prompt.stops.begin(), prompt.stops.end());
  plan.text.visible.clear();
  for (const std::string& word : prompt.constraint.preserved_tokens) {
    // Words of several tokens are plain text and need no help.
    if (const Tokens ids = services.tokenizer.tokenize(word, false, true); ids.size() == 1) {
      plan.text.visible.insert(ids.front());
    }
  }
  plan.constraint = prompt.constraint;
  plan.make_watch = nullptr;
  if (!prompt.one_call) return;
  chat::Prompt parsed;  // as far as its parser needs it
  parsed.one_call = true;
  parsed.parser_state = prompt.parser_state;
  plan.make_watch = [&templates = services.templates, parsed] { return templates.make_parser(parsed); };
}

ChatPlan make_chat_plan(const Services& services, CompletionDraft draft, std::string_view id_prefix) {
  FormatFacts facts = make_facts(services, draft, id_prefix);
  return make_chat_plan(services, std::move(draft), std::move(facts));
}

ChatPlan make_chat_plan(const Services& services, CompletionDraft draft, FormatFacts facts) {
  chat::Prompt prompt = *std::move(draft.chat);
  CompletionPlan plan = make_plan(std::move(draft));
  set_output_rules(prompt, services, plan);
  plan.is_chat = true;
  return {std::move(plan), std::move(facts), std::move(prompt)};
}

}  // namespace coppice::api
