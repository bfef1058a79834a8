#include "api/completion_draft.h"

#include <utility>

#include "api/continuation.h"
#include "api/json_text.h"
#include "api/normalise.h"
#include "api/placement_fields.h"
#include "api/prompts.h"

namespace coppice::api {
namespace {

Result<void> read_chat(const Services& services, CompletionDraft& draft) {
  draft.marks = normalise_chat(draft.body);
  const bool exact = services.exact_continuation && services.turns != nullptr;
  const Continuation continuation(exact ? services.turns : nullptr, draft.placement.ns, draft.body);
  auto prompt = services.templates.render(draft.body);
  if (!prompt) return std::unexpected(prompt.error());
  if (auto tokens = continuation.tokens(prompt->text, services.tokenizer)) {
    draft.continued = true;
    draft.prompts.push_back(*std::move(tokens));
  } else {
    auto all = tokenize_chat(*prompt, services.tokenizer, services.model.n_ctx);
    if (!all) return std::unexpected(all.error());
    draft.prompts.push_back(*std::move(all));
  }
  if (services.turns != nullptr && continuation.conversation()) {
    draft.turn = TurnSeed{.conversation = *continuation.conversation(),
                          .prompt_bytes = prompt->text.size(),
                          .prompt_digest = digest_of(prompt->text)};
  }
  draft.chat = *std::move(prompt);
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
  if (!draft.marks.empty() && draft.placement.cache_prompt) {
    draft.placement.pins =
        call.context.mark_positions.place(draft.marks, draft.body, draft.placement.ns, draft.prompts.front(), services);
  }
  return draft;
}

}  // namespace coppice::api
