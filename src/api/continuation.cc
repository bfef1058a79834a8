#include "api/continuation.h"

#include <algorithm>

#include "api/message_role.h"
#include "base/json.h"
#include "base/trim.h"

namespace coppice::api {
namespace {

// Looking at a turn costs a digest of its prompt's text; older ones than these are hardly ever the answer.
constexpr int kTurnsTried = 4;

void restore(Json& message, const session::Turn& turn) {
  if (!turn.reasoning.empty()) message["reasoning_content"] = turn.reasoning;
  const auto calls = message.find("tool_calls");
  if (calls == message.end() || !calls->is_array()) return;
  // The digests agree, so there are as many calls, with the same names and arguments of the same meaning.
  for (std::size_t i = 0; i < std::min(calls->size(), turn.calls.size()); ++i) {
    (*calls)[i]["function"]["arguments"] = turn.calls[i].arguments;
  }
}

}  // namespace

bool shows(std::string_view rendered, const session::Turn& turn) {
  const auto has = [&](std::string_view part) { return rendered.find(trimmed(part)) != std::string_view::npos; };
  return has(turn.reasoning) && has(turn.content) &&
         std::all_of(turn.calls.begin(), turn.calls.end(), [&](const auto& call) { return has(call.name); });
}

std::optional<Tokens> tokens_from(const session::Turn& turn, std::string_view rest,
                                  const engine::Tokenizer& tokenizer) {
  // Text that begins with a special token is tokenized as it would be behind anything else.
  const Tokens last = tokenizer.tokenize(rest, false, true);
  if (last.empty() || last.front() != turn.end_token) return std::nullopt;
  Tokens tokens;
  tokens.reserve(turn.prompt->size() + turn.generated.size() + last.size());
  for (const Tokens* part : {turn.prompt.get(), &turn.generated, &last}) {
    tokens.insert(tokens.end(), part->begin(), part->end());
  }
  return tokens;
}

std::optional<Continuation::Found> Continuation::latest() const {
  if (turns_.empty()) return std::nullopt;
  return turns_.back();
}

Continuation::Continuation(session::TurnMemory* memory, NamespaceId ns, Json& body) {
  const std::vector<Digest> digests = conversation_digests(ns, body);
  if (digests.empty()) return;
  conversation_ = digests.back();
  if (memory == nullptr) return;
  Json& messages = body["messages"];
  for (std::size_t i = 0; i < digests.size(); ++i) {
    Json& message = messages[i];
    if (role_of(message) != "assistant") continue;
    auto turn = memory->find(digests[i]);
    if (turn == nullptr) continue;
    restore(message, *turn);
    turns_.push_back({std::move(turn), i});
  }
}

std::optional<Tokens> Continuation::tokens(const std::string& text, const engine::Tokenizer& tokenizer) const {
  int tried = 0;
  for (auto it = turns_.rbegin(); it != turns_.rend() && tried < kTurnsTried; ++it, ++tried) {
    const session::Turn& turn = *it->turn;
    if (turn.prompt_bytes > text.size()) continue;
    if (digest_of(std::string_view(text).substr(0, turn.prompt_bytes)) != turn.prompt_digest) continue;
    // The answer goes up to where it was ended, by the token that ended it.
    const std::string end = tokenizer.piece(turn.end_token, true);
    const std::size_t at = end.empty() ? std::string::npos : text.find(end, turn.prompt_bytes);
    if (at == std::string::npos) continue;
    if (!shows(std::string_view(text).substr(turn.prompt_bytes, at - turn.prompt_bytes), turn)) continue;

    if (auto tokens = tokens_from(turn, std::string_view(text).substr(at), tokenizer)) return tokens;
  }
  return std::nullopt;
}

}  // namespace coppice::api
