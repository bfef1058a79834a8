#include "api/explain_routes.h"

#include <memory>
#include <string_view>
#include <utility>

#include "api/any_draft.h"
#include "api/json_text.h"
#include "api/place_json.h"

namespace coppice::api {
namespace {

std::string_view name_of(kv::SlotRule rule) {
  switch (rule) {
    case kv::SlotRule::wait: return "wait";
    case kv::SlotRule::explicit_id: return "explicit_id";
    case kv::SlotRule::session: return "session";
    case kv::SlotRule::similarity: return "similarity";
    case kv::SlotRule::least_recent: return "least_recent";
  }
  return "";
}

Json nearest_json(const std::optional<sched::Nearest>& nearest) {
  if (!nearest) return nullptr;
  return {
      {"session", text_or_null(nearest->session)},
      {"where", place_json(nearest->place)},
      {"length", nearest->length},
      {"common", nearest->common},
      {"before_text", nearest->before_text},
      {"prompt_text", nearest->prompt_text},
      {"held_text", nearest->held_text},
      {"before_tokens", nearest->before},
      {"prompt_tokens", nearest->prompt_after},
      {"held_tokens", nearest->held_after},
  };
}

Json explanation_json(const sched::Explanation& found, const sched::Placement& placement) {
  const bool diverged = found.diverged_at >= 0;
  return {
      {"prompt_tokens", found.prompt_tokens},
      {"reused", found.reused},
      {"computed", found.computed},
      {"source", kv::name(found.source)},
      {"prepared", found.prepared},
      {"from", place_json(found.from)},
      {"slot", found.slot ? Json(found.slot->value) : Json(nullptr)},
      {"slot_rule", name_of(found.rule)},
      {"reason", text_or_null(kv::name(found.reason))},
      {"diverged_at", diverged ? Json(found.diverged_at) : Json(nullptr)},
      {"diverged_text", diverged ? Json(found.diverged_text) : Json(nullptr)},
      {"waits_for", found.waits_for ? Json(found.waits_for->value) : Json(nullptr)},
      {"waits_until", found.waits_until},
      {"waits_for_cells", found.waits_for_cells},
      {"cells_needed", found.cells_needed},
      {"session", text_or_null(placement.session)},
      {"session_rule", text_or_null(placement.session_rule)},
      {"nearest", nearest_json(found.nearest)},
  };
}

}  // namespace

Result<Inspection> post_explain(const Call& call) {
  auto body = parse_any_body(call);
  if (!body) return std::unexpected(body.error());
  auto draft = read_any_draft(call, *std::move(body));
  if (!draft) return std::unexpected(draft.error());
  const auto prompt = std::make_shared<const Tokens>(std::move(draft->prompts.front()));
  return inspection(
      [prompt, placement = draft->placement](sched::Inspector& engine) {
        return Result<sched::Explanation>(engine.explain(*prompt, placement));
      },
      [placement = draft->placement](const sched::Explanation& found) { return explanation_json(found, placement); });
}

}  // namespace coppice::api
