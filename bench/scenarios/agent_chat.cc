#include "scenarios/agent_chat.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace coppice::bench {
namespace {

constexpr std::array<std::string_view, 40> kWords = {
    "river",  "stone",  "paper",  "green",  "seven",  "often",  "carry",  "window", "bread",  "north",
    "simple", "under",  "market", "letter", "build",  "summer", "engine", "quiet",  "glass",  "early",
    "follow", "animal", "story",  "field",  "number", "water",  "before", "orange", "round",  "listen",
    "copper", "table",  "write",  "metal",  "behind", "winter", "place",  "steam",  "answer", "night"};

constexpr std::size_t kCallTokens = 160;  // of a tool call: the grammar lets a model take many small ones

// One value is allowed, so that random weights choose no other.
Json tool_list() {
  const Json page = {{"type", "integer"}, {"enum", {1}}};
  return Json::array(
      {{{"type", "function"},
        {"function",
         {{"name", "read_page"},
          {"description", "Reads the page that is open"},
          {"parameters", {{"type", "object"}, {"properties", {{"page", page}}}, {"required", {"page"}}}}}}}});
}

Status expect_thoughts(const Json& message) {
  if (message.contains("reasoning_content") && !message["reasoning_content"].get_ref<const std::string&>().empty()) {
    return {};
  }
  return std::unexpected(
      "an answer without thoughts: the server needs a template that opens them, see scripts/bench.sh");
}

}  // namespace

Result<AgentChat> AgentChat::begin(const Peer& peer, const ChatLengths& lengths, std::uint64_t seed) {
  AgentChat chat(peer, lengths, seed);
  if (const Status s = chat.measure_words(); !s) return std::unexpected(s.error());
  chat.messages_.push_back({{"role", "system"}, {"content", chat.words(lengths.system)}});
  return chat;
}

Status AgentChat::measure_words() {
  constexpr std::size_t sample = 200;
  const Result<Tokens> tokens = peer_->tokens(words(sample));
  if (!tokens) return std::unexpected(tokens.error());
  tokens_per_word_ = std::max(static_cast<double>(tokens->size()) / sample, 1.0);
  const Result<Tokens> call = peer_->tokens("<tool_call>");
  if (!call) return std::unexpected(call.error());
  if (call->size() != 1) return std::unexpected("<tool_call> is no token of this model, so it cannot be made to call");
  call_token_ = call->front();
  return {};
}

std::string AgentChat::words(std::size_t n_tokens) {
  const auto n = static_cast<std::size_t>(static_cast<double>(n_tokens) / tokens_per_word_);
  std::string text;
  for (std::size_t i = 0; i < std::max<std::size_t>(n, 1); ++i) {
    seed_ = mix(seed_, i);
    text += fmt::format("{}{}", i == 0 ? "" : " ", kWords[seed_ % kWords.size()]);
  }
  return text;
}

Result<std::size_t> AgentChat::say() {
  std::string text = words(lengths_.message);
  const Result<Tokens> tokens = peer_->tokens(text);
  if (!tokens) return std::unexpected(tokens.error());
  messages_.push_back({{"role", "user"}, {"content", std::move(text)}});
  return tokens->size();
}

Result<Completion> AgentChat::call_tool() {
  const Json bias = {{std::to_string(call_token_), 100}};
  // The newline that the prompt ends with uses the budget up, so the text comes at once and whole.
  auto answer = ask({{"tool_choice", "required"},
                     {"parallel_tool_calls", false},
                     {"logit_bias", bias},
                     {"reasoning_budget_tokens", 1},
                     {"reasoning_budget_message", words(lengths_.thought) + "\n"},
                     {"max_tokens", 2 * lengths_.thought + kCallTokens}});
  if (!answer) return answer;
  const Json& message = answer->message;
  if (!message.contains("tool_calls") || message["tool_calls"].size() != 1) {
    return std::unexpected("an answer without a tool call: " + message.dump().substr(0, 300));
  }
  messages_.push_back(
      {{"role", "tool"}, {"tool_call_id", message["tool_calls"][0]["id"]}, {"content", words(lengths_.result)}});
  return answer;
}

Result<Completion> AgentChat::answer() {
  const std::string thought = words(lengths_.thought), text = words(lengths_.answer);
  auto answer = ask({{"tool_choice", "none"},
                     {"grammar", fmt::format(R"(root ::= "{}\n</think>\n\n{}")", thought, text)},
                     {"max_tokens", 8 * (lengths_.thought + lengths_.answer)}});
  if (answer && answer->message.value("content", Json()) != text) {
    return std::unexpected("another answer than its grammar says: " + answer->message.dump().substr(0, 300));
  }
  return answer;
}

Result<Completion> AgentChat::ask(Json options) {
  options["tools"] = tool_list();
  auto answer = peer_->complete({.prompt = {}, .session = "", .messages = messages_, .options = std::move(options)});
  if (!answer) return answer;
  if (const Status s = expect_thoughts(answer->message); !s) return std::unexpected(s.error());
  messages_.push_back(answer->message);
  return answer;
}

}  // namespace coppice::bench
