#include "api/completion_draft.h"

#include <memory>
#include <utility>

#include "api/chat_guess.h"
#include "api/continuation.h"
#include "api/history_end.h"
#include "api/json_text.h"
#include "api/normalise.h"
#include "api/placement_fields.h"
#include "api/prompts.h"
#include "base/json.h"

namespace coppice::api {
namespace {

void take(RenderedChat chat, CompletionDraft& draft) {
  draft.prompts.push_back(std::move(chat.tokens));
  draft.continued = chat.continued;
  draft.chat = std::move(chat.prompt);
  draft.turn = std::move(chat.turn);
}

Result<void> read_chat(const Call& call, Rendering rendering, CompletionDraft& draft) {
  const Services& services = call.services();
  const NamespaceId ns = draft.placement.ns;
  draft.marks = normalise_chat(draft.body);
  const bool exact = services.exact_continuation && services.turns != nullptr;
  const auto continuation = std::make_shared<const Continuation>(exact ? services.turns : nullptr, ns, draft.body);
  OutputRules& rules = call.context.output_rules;
  const Digest kind = continuation->conversation() ? output_kind(ns, draft.body) : Digest{};
  // Renders the body, and keeps what the next guess will need.
  const auto render = [&services, &rules, kind, continuation](const Json& body) {
    auto chat = render_chat(services, *continuation, body);
    if (chat && chat->turn) rules.remember(kind, chat->prompt);
    return chat;
  };
  const bool may_guess = rendering == Rendering::guess_first && exact;
  if (auto guess = may_guess ? guess_chat(services, rules, *continuation, kind, draft.body) : std::nullopt) {
    draft.confirm = [render, guess](const Json& body) -> Result<Confirmed> {
      auto whole = render(body);
      if (!whole) return std::unexpected(whole.error());
      const bool same = same_request(*guess, *whole);
      return Confirmed{*std::move(whole), same};
    };
    take(*std::move(guess), draft);
    return {};
  }
  auto chat = render(draft.body);
  if (!chat) return std::unexpected(chat.error());
  take(*std::move(chat), draft);
  return {};
}

Result<void> read_text(const Services& services, CompletionDraft& draft) {
  auto prompts = read_prompts(draft.body, services.tokenizer, static_cast<std::size_t>(services.limits.prompts_max),
                              services.model.n_ctx);
  if (!prompts) return std::unexpected(prompts.error());
  draft.prompts = *std::move(prompts);
  // Nothing looks at it from here on, and the values' own way of dropping a long list takes longer than reading it.
  if (Json& prompt = draft.body["prompt"]; prompt.is_array()) prompt.get_ref<Json::array_t&>().clear();
  return {};
}

}  // namespace

Result<CompletionDraft> read_draft(const Call& call, ApiKind api, Rendering rendering) {
  auto body = parse_body(call.http.body);
  if (!body) return std::unexpected(body.error());
  return read_draft(call, api, *std::move(body), rendering);
}

Result<CompletionDraft> read_draft(const Call& call, ApiKind api, Json body, Rendering rendering) {
  const Services& services = call.services();
  auto generation = read_generation(body, api, services);
  if (!generation) return std::unexpected(generation.error());
  auto placement = read_placement(body, call);
  if (!placement) return std::unexpected(placement.error());

  CompletionDraft draft;
  draft.body = std::move(body);
  draft.generation = *std::move(generation);
  draft.placement = *std::move(placement);
  auto read = api == ApiKind::chat ? read_chat(call, rendering, draft) : read_text(services, draft);
  if (!read) return std::unexpected(read.error());
  for (const Tokens& prompt : draft.prompts) {
    if (auto fits = check_prompt(prompt, services.model.n_ctx); !fits) return std::unexpected(fits.error());
  }
  if (draft.chat) {
    draft.placement.history =
        history_tokens(draft.prompts.front(), draft.chat->constraint.generation_prompt, services.tokenizer);
  }
  if (!draft.marks.empty() && draft.placement.cache_prompt) {
    draft.placement.pins =
        call.context.mark_positions.place(draft.marks, draft.body, draft.placement.ns, draft.prompts.front(), services);
  }
  return draft;
}

}  // namespace coppice::api
