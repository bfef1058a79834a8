#include "api/cache_diagnostics.h"

#include <algorithm>
#include <functional>
#include <string>

#include "base/json.h"
#include "base/json_text.h"

namespace coppice::api {
namespace {

std::uint64_t digest(std::string_view text) { return std::hash<std::string_view>{}(text); }

std::uint64_t digest_field(const Json& body, const char* field) {
  const auto it = body.find(field);
  return it == body.end() || it->is_null() ? 0 : digest(to_text(*it));
}

// A part of the request: what we call it, and OpenAI's reason for it.
struct Difference {
  const char* part;
  const char* reason;
};

// Instructions are a part of the input to OpenAI.
std::vector<Difference> differences(const PromptDigest& before, const PromptDigest& now) {
  std::vector<Difference> out;
  if (before.model != now.model) out.push_back({"model", "model_changed"});
  if (before.tools != now.tools) out.push_back({"tools", "tools_changed"});
  if (before.text_format != now.text_format) out.push_back({"text_format", "text_format_changed"});
  if (before.reasoning_effort != now.reasoning_effort) {
    out.push_back({"reasoning_effort", "reasoning_effort_changed"});
  }
  if (before.instructions != now.instructions) out.push_back({"instructions", "input_changed"});
  // A conversation that only went on has all the earlier messages at its beginning.
  const bool went_on = before.messages.size() <= now.messages.size() &&
                       std::equal(before.messages.begin(), before.messages.end(), now.messages.begin());
  if (!went_on) out.push_back({"input", "input_changed"});
  return out;
}

}  // namespace

PromptDigest digest_of(std::string_view model, const Json& chat, bool has_instructions) {
  PromptDigest out;
  out.model = digest(model);
  out.tools = digest_field(chat, "tools");
  out.text_format = digest_field(chat, "response_format");
  out.reasoning_effort = digest_field(chat, "reasoning_effort");
  for (const Json& message : chat.at("messages")) out.messages.push_back(digest(to_text(message)));
  if (has_instructions && !out.messages.empty()) {
    out.instructions = out.messages.front();
    out.messages.erase(out.messages.begin());
  }
  return out;
}

Json cache_diagnostics(const PromptDigest* compared, const PromptDigest& now, const sched::Report& report) {
  if (compared == nullptr) return {{"type", "comparison_response_not_found"}};
  // The last token of a prompt is always computed: its logits are needed.
  const TokenPos reusable = std::max(0, std::min(compared->n_tokens, report.prompt_tokens) - 1);
  if (report.reused() >= reusable) return {{"type", "cache_hit"}};
  const auto changed = differences(*compared, now);
  if (changed.empty()) {
    return {{"type", report.reason == kv::MissReason::none ? "cache_hit" : "unavailable"}};
  }
  Json parts = Json::array();
  for (const Difference& difference : changed) parts.push_back(difference.part);
  return {{"type", "cache_miss"},
          {"reason", changed.front().reason},
          {"changed", std::move(parts)},
          {"comparison_reusable_tokens", reusable},
          {"cache_missed_tokens", reusable - report.reused()}};
}

}  // namespace coppice::api
