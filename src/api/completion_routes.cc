#include "api/completion_routes.h"

#include <atomic>
#include <random>

#include "api/chat_format.h"
#include "api/completions_format.h"
#include "api/json_text.h"
#include "api/native_format.h"
#include "api/placement_fields.h"
#include "api/prompts.h"

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

// What the three routes have in common; prompts and format are still missing.
struct Draft {
  CompletionPlan plan;
  std::string parent_session;

  FormatFacts facts(const Services& services, std::string_view id_prefix) const {
    return {.id = make_id(id_prefix),
            .created_unix_s = services.unix_time_s(),
            .model = services.model.id,
            .build = services.model.build,
            .n_ctx = services.model.n_ctx,
            .session = {plan.placement.session, plan.placement.session_rule, parent_session},
            .generation = plan.generation,
            .tokenizer = services.tokenizer};
  }
};

Result<Draft> read_draft(const Context& context, const HttpRequest& request, std::string_view key, ApiKind api) {
  auto body = parse_body(request.body);
  if (!body) return std::unexpected(body.error());
  auto generation = read_generation(*body, api, context.services);
  if (!generation) return std::unexpected(generation.error());
  auto placement = read_placement(*body, request, key, context.keyring, context.services);
  if (!placement) return std::unexpected(placement.error());

  Draft draft;
  draft.parent_session = std::move(placement->parent_session);
  draft.plan.generation = *std::move(generation);
  draft.plan.placement = std::move(placement->placement);
  draft.plan.text.stop = draft.plan.generation.stop;
  draft.plan.body = *std::move(body);
  return draft;
}

Result<void> add_prompts(const Context& context, CompletionPlan& plan) {
  const Services& services = context.services;
  auto prompts = read_prompts(plan.body, services.tokenizer, static_cast<std::size_t>(services.limits.prompts_max),
                              services.model.n_ctx);
  if (!prompts) return std::unexpected(prompts.error());
  for (const Tokens& prompt : *prompts) {
    if (auto fits = check_prompt(prompt, services.model.n_ctx); !fits) return fits;
  }
  plan.prompts = *std::move(prompts);
  return {};
}

}  // namespace

Result<CompletionPlan> plan_native(const Context& context, const HttpRequest& request, std::string_view key) {
  auto draft = read_draft(context, request, key, ApiKind::native);
  if (!draft) return std::unexpected(draft.error());
  CompletionPlan& plan = draft->plan;
  if (auto added = add_prompts(context, plan); !added) return std::unexpected(added.error());
  // Streams name the tokens of each piece, and count them.
  plan.text.return_tokens = plan.generation.return_tokens || plan.generation.stream;
  plan.format = std::make_unique<NativeFormat>(draft->facts(context.services, "cmpl-"));
  return std::move(plan);
}

Result<CompletionPlan> plan_completions(const Context& context, const HttpRequest& request, std::string_view key) {
  auto draft = read_draft(context, request, key, ApiKind::completions);
  if (!draft) return std::unexpected(draft.error());
  CompletionPlan& plan = draft->plan;
  if (auto added = add_prompts(context, plan); !added) return std::unexpected(added.error());
  plan.format = std::make_unique<CompletionsFormat>(draft->facts(context.services, "cmpl-"));
  return std::move(plan);
}

Result<CompletionPlan> plan_chat(const Context& context, const HttpRequest& request, std::string_view key) {
  const Services& services = context.services;
  auto draft = read_draft(context, request, key, ApiKind::chat);
  if (!draft) return std::unexpected(draft.error());
  CompletionPlan& plan = draft->plan;
  auto prompt = services.templates.render(plan.body);
  if (!prompt) return std::unexpected(prompt.error());
  if (auto fits = check_text(prompt->text, services.tokenizer, services.model.n_ctx); !fits) {
    return std::unexpected(fits.error());
  }
  Tokens tokens = services.tokenizer.tokenize(prompt->text, true, true);
  if (auto fits = check_prompt(tokens, services.model.n_ctx); !fits) return std::unexpected(fits.error());
  plan.prompts.push_back(std::move(tokens));

  plan.text.stop.insert(plan.text.stop.end(), prompt->stops.begin(), prompt->stops.end());
  for (const std::string& word : prompt->constraint.preserved_tokens) {
    // Words of several tokens are plain text and need no help.
    if (const Tokens ids = services.tokenizer.tokenize(word, false, true); ids.size() == 1) {
      plan.text.visible.insert(ids.front());
    }
  }
  plan.constraint = prompt->constraint;
  plan.format =
      std::make_unique<ChatFormat>(draft->facts(services, "chatcmpl-"), services.templates, *std::move(prompt));
  return std::move(plan);
}

}  // namespace coppice::api
