#include "api/next_prompt.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/continuation.h"
#include "api/message_json.h"
#include "api/prompts.h"
#include "base/json.h"
#include "kv/prefix.h"

namespace coppice::api {
namespace {

// What may be said next. They part at their first character; the last one is for templates that look into what tools
// return.
constexpr std::array<std::string_view, 3> kPlaceholders = {"Some words.", "1, then 2", R"({"n": [1]})"};

std::span<const std::string_view> placeholders(const chat::Message& answer) {
  return std::span(kPlaceholders).first(answer.tool_calls.empty() ? 2 : 3);
}

// What text can begin with, by how tokenizers treat it: it may become one token with what stands before it.
constexpr std::array<std::string_view, 10> kBeginnings = {"x",   "X", "1",  "\n", "\n\n\n",
                                                          "  x", "<", "'s", ".",  "\xc3\xa9"};

// How far before the end of what renderings have in common a special token is looked for.
constexpr std::size_t kCutBack = 16;

std::vector<Json> what_follows(const chat::Message& answer, std::string_view words) {
  std::vector<Json> out;
  for (const chat::ToolCall& call : answer.tool_calls) {
    out.push_back({{"role", "tool"}, {"tool_call_id", call.id}, {"name", call.name}, {"content", words}});
  }
  if (out.empty()) out.push_back({{"role", "user"}, {"content", words}});
  return out;
}

// One way in which a client may send the conversation back.
class SentBack {
 public:
  SentBack(const Services& services, NamespaceId ns, Json body)
      : services_(services),
        body_(std::move(body)),
        continuation_(services.exact_continuation ? services.turns : nullptr, ns, body_),
        n_messages_(body_["messages"].size()) {}

  // Whether its last message is an answer of ours: then what a client leaves out of it is put back.
  bool is_known() const {
    const auto latest = continuation_.latest();
    return latest && latest->message + 1 == n_messages_;
  }

  // With `messages` behind it; nothing if the template refuses them.
  std::optional<std::string> text_with(std::vector<Json> messages) {
    Json& list = body_["messages"];
    for (Json& message : messages) list.push_back(std::move(message));
    auto text = services_.templates.render_text(body_);
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(n_messages_), list.end());
    if (!text || !check_text(*text, services_.tokenizer, services_.model.n_ctx)) return std::nullopt;
    return *std::move(text);
  }

  Tokens tokens(const std::string& text) const {
    auto exact = continuation_.tokens(text, services_.tokenizer);
    return exact ? *std::move(exact) : services_.tokenizer.tokenize(text, true, true);
  }

 private:
  const Services& services_;
  Json body_;
  const Continuation continuation_;
  const std::size_t n_messages_;
};

// What the prompts that were added have in common.
class Common {
 public:
  explicit Common(const engine::Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  void add(const SentBack& way, std::string text) {
    Tokens tokens = way.tokens(text);
    if (std::exchange(any_, true)) {
      tokens_.resize(static_cast<std::size_t>(kv::common_prefix(tokens_, tokens)));
      text_.resize(static_cast<std::size_t>(std::ranges::mismatch(text_, text).in1 - text_.begin()));
    } else {
      tokens_ = std::move(tokens);
      text_ = std::move(text);
    }
  }

  // Without what may become another token, by what comes behind it. Text behind a special token is tokenized by itself.
  Tokens settled(const SentBack& way) {
    for (std::size_t n = tokens_.size(); n > 0 && tokens_.size() - n < kCutBack; --n) {
      if (!is_special(tokens_[n - 1])) continue;
      tokens_.resize(n);
      return std::move(tokens_);
    }
    const std::string text = text_;
    for (const std::string_view beginning : kBeginnings) add(way, text + std::string(beginning));
    return std::move(tokens_);
  }

 private:
  bool is_special(Token token) const {
    return tokenizer_.piece(token, false).empty() && !tokenizer_.piece(token, true).empty();
  }

  const engine::Tokenizer& tokenizer_;
  bool any_ = false;
  Tokens tokens_;
  std::string text_;
};

}  // namespace

std::optional<Tokens> known_beginning(const Services& services, NamespaceId ns, const Json& body,
                                      const chat::Message& answer, const std::stop_token& stop) {
  const auto sent_back = [&](const chat::Message& message) {
    Json all = body;
    all["messages"].push_back(message_json(message));
    return SentBack(services, ns, std::move(all));
  };
  std::vector<SentBack> ways;
  ways.push_back(sent_back(answer));
  if (!ways.front().is_known() && !answer.reasoning.empty()) {
    chat::Message bare = answer;
    bare.reasoning.clear();
    ways.push_back(sent_back(bare));
  }
  Common common(services.tokenizer);
  for (SentBack& way : ways) {
    int n_rendered = 0;
    for (const std::string_view words : placeholders(answer)) {
      if (stop.stop_requested()) return std::nullopt;
      auto text = way.text_with(what_follows(answer, words));
      if (!text) continue;
      common.add(way, *std::move(text));
      ++n_rendered;
    }
    if (n_rendered < 2) return std::nullopt;  // one alone shows nothing
  }
  Tokens tokens = common.settled(ways.front());
  if (!check_prompt(tokens, services.model.n_ctx)) return std::nullopt;
  return tokens;
}

}  // namespace coppice::api
