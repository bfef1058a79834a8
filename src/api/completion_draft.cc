#include "api/completion_draft.h"

#include <utility>

#include "api/json_text.h"
#include "api/placement_fields.h"
#include "api/prompts.h"

namespace coppice::api {
namespace {

Result<void> read_chat(const Services& services, CompletionDraft& draft) {
  auto prompt = services.templates.render(draft.body);
  if (!prompt) return std::unexpected(prompt.error());
  auto tokens = tokenize_chat(*prompt, services.tokenizer, services.model.n_ctx);
  if (!tokens) return std::unexpected(tokens.error());
  draft.chat = *std::move(prompt);
  draft.prompts.push_back(*std::move(tokens));
  return {};
}

Result<void> read_text(const Services& services, CompletionDraft& draft) {
  auto prompts = read_prompts(draft.body, services.tokenizer, static_cast<std::size_t>(services.limits.prompts_max),
                              services.model.n_ctx);
  if (!prompts) return std::unexpected(prompts.error());
  draft.prompts = *std::move(prompts);
  return {};
}

}  // namespace

Result<CompletionDraft> read_draft(const Call& call, ApiKind api) {
  auto body = parse_body(call.http.body);
  if (!body) return std::unexpected(body.error());
  return read_draft(call, api, *std::move(body));
}

Result<CompletionDraft> read_draft(const Call& call, ApiKind api, Json body) {
  const Services& services = call.services();
  auto generation = read_generation(body, api, services);
  if (!generation) return std::unexpected(generation.error());
  auto placement = read_placement(body, call);
  if (!placement) return std::unexpected(placement.error());

  CompletionDraft draft;
  draft.body = std::move(body);
  draft.generation = *std::move(generation);
  draft.placement = *std::move(placement);
  auto read = api == ApiKind::chat ? read_chat(services, draft) : read_text(services, draft);
  if (!read) return std::unexpected(read.error());
  for (const Tokens& prompt : draft.prompts) {
    if (auto fits = check_prompt(prompt, services.model.n_ctx); !fits) return std::unexpected(fits.error());
  }
  return draft;
}

}  // namespace coppice::api
