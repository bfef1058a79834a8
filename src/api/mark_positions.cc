#include "api/mark_positions.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "api/prompts.h"
#include "api/stable_prefix.h"
#include "base/json_text.h"

namespace coppice::api {
namespace {

Digest digest_of_tokens(std::span<const Token> tokens) {
  return digest_of({reinterpret_cast<const char*>(tokens.data()), tokens.size_bytes()});
}

TokenPos common_length(const Tokens& a, const Tokens& b) {
  return static_cast<TokenPos>(std::ranges::mismatch(a, b).in1 - a.begin());
}

// How far the prompt is the same whatever the first user says.
Result<TokenPos> length_of_tools(const Json& body, const Tokens& prompt, const Services& services) {
  const Json content = body["messages"].front().value("content", Json(""));
  const bool begins_so = content.is_string() && content.get_ref<const std::string&>().starts_with('A');
  Json other = body;
  other["messages"] = Json::array();
  other["messages"].push_back({{"role", "user"}, {"content", begins_so ? "B" : "A"}});
  const auto rendered = services.templates.render(other);
  if (!rendered) return std::unexpected(rendered.error());
  const auto tokens = tokenize_chat(*rendered, services.tokenizer, services.model.n_ctx);
  if (!tokens) return std::unexpected(tokens.error());
  return common_length(prompt, *tokens);
}

Result<TokenPos> length_up_to(std::ptrdiff_t message, const Json& body, const Tokens& prompt,
                              const Services& services) {
  if (message < 0) return length_of_tools(body, prompt, services);
  Json beginning = body;
  Json& messages = beginning["messages"];
  messages.erase(messages.begin() + message + 1, messages.end());
  beginning.erase("add_generation_prompt");
  beginning.erase("continue_final_message");
  const auto tokens = stable_prefix(std::move(beginning), services);
  if (!tokens) return std::unexpected(tokens.error());
  return common_length(prompt, *tokens);
}

}  // namespace

std::vector<sched::PinWish> MarkPositions::place(const std::vector<CacheMark>& marks, const Json& body, NamespaceId ns,
                                                 const Tokens& prompt, const Services& services) {
  std::map<TokenPos, Duration> wishes;
  if (marks.empty()) return {};
  const std::vector<Digest> digests = conversation_digests(ns, body);
  const auto last = static_cast<std::ptrdiff_t>(digests.size()) - 1;
  for (const CacheMark& mark : marks) {
    if (mark.message > last || last < 0) continue;
    const Digest conversation = mark.message >= 0 ? digests[static_cast<std::size_t>(mark.message)]
                                                  : digest_of(to_text(body.value("tools", Json())));
    std::optional<TokenPos> length = static_cast<TokenPos>(prompt.size());
    if (mark.message < last) length = find(conversation, prompt);
    if (!length) {
      const auto found = length_up_to(mark.message, body, prompt, services);
      if (found) length = *found;
    }
    if (!length || *length < 1) continue;
    remember(conversation, {*length, digest_of_tokens(std::span(prompt).first(static_cast<std::size_t>(*length)))});
    Duration& ttl = wishes[*length];
    ttl = std::max(ttl, mark.ttl);
  }
  std::vector<sched::PinWish> out;
  for (const auto& [length, ttl] : wishes) out.push_back({length, ttl});
  return out;
}

std::optional<TokenPos> MarkPositions::find(const Digest& conversation, const Tokens& prompt) {
  Position known;
  {
    const std::lock_guard lock(mutex_);
    const auto it = by_conversation_.find(conversation);
    if (it == by_conversation_.end()) return std::nullopt;
    entries_.splice(entries_.begin(), entries_, it->second);
    known = it->second->position;
  }
  if (std::cmp_greater(known.length, prompt.size())) return std::nullopt;
  const auto beginning = std::span(prompt).first(static_cast<std::size_t>(known.length));
  return digest_of_tokens(beginning) == known.tokens ? std::optional(known.length) : std::nullopt;
}

void MarkPositions::remember(const Digest& conversation, const Position& position) {
  const std::lock_guard lock(mutex_);
  if (const auto known = by_conversation_.find(conversation); known != by_conversation_.end()) {
    known->second->position = position;
    entries_.splice(entries_.begin(), entries_, known->second);
    return;
  }
  entries_.push_front({conversation, position});
  by_conversation_[conversation] = entries_.begin();
  if (entries_.size() <= positions_max_) return;
  by_conversation_.erase(entries_.back().conversation);
  entries_.pop_back();
}

std::size_t MarkPositions::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

}  // namespace coppice::api
