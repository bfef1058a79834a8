// For tests over the chat templates of llama.cpp's release: a chat through one of them with a model that writes exactly
// what the template shows of its answers, on a tokenizer that knows the special tokens of every model.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/completion_draft.h"
#include "api/fakes.h"

namespace coppice::api {

// Everything that looks like a special token of some model is one token. Between them every byte is, or, with
// `merges`, every word and every run of anything else, each with the space before it: a byte-pair tokenizer that
// merges all it can.
class MarkupTokenizer final : public engine::Tokenizer {
 public:
  explicit MarkupTokenizer(bool merges = false) : merges_(merges) {}

  std::size_t piece_bytes_max() const override { return merges_ ? 1 << 20 : 64; }
  Tokens tokenize(std::string_view text, bool, bool parse_special) const override {
    Tokens out;
    while (!text.empty()) {
      const std::size_t special = parse_special ? special_bytes(text) : 0;
      const std::size_t n = special > 0 ? special : merges_ ? run_bytes(text, parse_special) : 1;
      out.push_back(n == 1 ? static_cast<unsigned char>(text.front()) : named(text.substr(0, n), special > 0));
      text.remove_prefix(n);
    }
    return out;
  }
  std::string piece(Token token, bool special) const override {
    if (token < kNamed) return {static_cast<char>(token)};
    const auto& [name, is_special] = names_.at(static_cast<std::size_t>(token - kNamed));
    return is_special && !special ? "" : name;
  }
  bool is_end_of_generation(Token) const override { return false; }
  std::int32_t n_vocab() const override { return 1'000'000; }

  // The length of the special token that `text` begins with, or 0.
  static std::size_t special_bytes(std::string_view text) {
    constexpr std::size_t kBytesMax = 64;
    const char close = text.front() == '<' ? '>' : text.front() == '[' ? ']' : '\0';
    const std::size_t end = close == '\0' ? std::string_view::npos : text.find(close);
    if (end == std::string_view::npos || end > kBytesMax) return 0;
    const std::string_view name = text.substr(1, end - 1);
    if (name.find_first_of(" \n\"{},:'") != std::string_view::npos || name.empty()) return 0;
    if (close == ']' && std::ranges::any_of(name, [](unsigned char c) { return std::islower(c) != 0; })) return 0;
    return end + 1;
  }

 private:
  static constexpr Token kNamed = 256;

  static int kind_of(char c) {
    const auto byte = static_cast<unsigned char>(c);
    return std::isalpha(byte) != 0 || byte >= 0x80 ? 0 : std::isdigit(byte) != 0 ? 1 : std::isspace(byte) != 0 ? 2 : 3;
  }
  // Of the run that `text` begins with.
  static std::size_t run_bytes(std::string_view text, bool parse_special) {
    std::size_t n = text.front() == ' ' && text.size() > 1 ? 1 : 0;
    const int kind = kind_of(text[n]);
    while (n < text.size() && kind_of(text[n]) == kind) {
      if (n > 0 && parse_special && special_bytes(text.substr(n)) > 0) break;
      ++n;
    }
    return n;
  }
  Token named(std::string_view name, bool special) const {
    const auto token = static_cast<Token>(kNamed + names_.size());
    const auto [at, is_new] = ids_.try_emplace(std::pair(std::string(name), special), token);
    if (is_new) names_.push_back(at->first);
    return at->second;
  }

  const bool merges_;
  mutable std::map<std::pair<std::string, bool>, Token> ids_;
  mutable std::vector<std::pair<std::string, bool>> names_;
};

inline std::vector<std::filesystem::path> template_paths() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(COPPICE_TEMPLATE_DIR)) {
    if (entry.path().extension() == ".jinja") paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  return paths;
}

inline std::string template_source(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

inline Json look_up_tools() {
  return Json::parse(R"([{"type":"function","function":{"name":"look_up","description":"Looks up a name.",
    "parameters":{"type":"object","required":["name"],"properties":{"name":{"type":"string"}}}}}])");
}

class ScriptedChat {
 public:
  ScriptedChat(const chat::Templates& templates, bool tools, MarkupTokenizer tokenizer_to_use = MarkupTokenizer())
      : tokenizer(std::move(tokenizer_to_use)), templates_(templates) {
    body = {{"messages", Json::array({{{"role", "user"}, {"content", "What is it?"}}})}};
    if (tools) body["tools"] = look_up_tools();
  }

  // What the model means to say: a call for the next name, or words; each is said once.
  Json intended(bool calls, bool reasons) {
    const std::string number = std::to_string(++n_), id = "abcdefg" + std::to_string(10 + n_);
    last_words_ = (calls ? "NAME-" : "ANSWER-") + number;
    Json out = {{"role", "assistant"}, {"content", calls ? "" : last_words_}};
    if (reasons) out["reasoning_content"] = "THOUGHT-" + number;
    if (!calls) return out;
    const Json function = {{"name", "look_up"}, {"arguments", Json{{"name", last_words_}}.dump()}};
    out["tool_calls"] = Json::array({{{"id", id}, {"type", "function"}, {"function", function}}});
    return out;
  }

  // What a client adds after `answer`: results of its calls, or a question.
  void reply(Json& messages, const Json& answer, const std::string& words) {
    for (const Json& call : answer.value("tool_calls", Json::array())) {
      messages.push_back({{"role", "tool"}, {"tool_call_id", call["id"]}, {"name", "look_up"}, {"content", words}});
    }
    if (messages.back()["role"] != "tool") messages.push_back({{"role", "user"}, {"content", words}});
  }
  void reply(Json& messages, const Json answer) {
    reply(messages, answer, (answer.contains("tool_calls") ? "RESULT-" : "QUESTION-") + std::to_string(n_));
  }

  // Sends what there is so far. False if it was answered with an error.
  bool ask() {
    responder_ = std::make_shared<FakeResponder>();
    router().handle({.method = "POST", .path = "/v1/chat/completions", .body = body.dump()}, responder_);
    responder_->run();
    return !engine.requests.empty() && responder_->n_sent == 0;
  }

  // Sends what there is so far, has it answered with what intended() made, and takes the answer into the conversation.
  // False if the template does not show where an answer ends. Not `remembered`: as one that a stop word ended.
  bool take_turn(const Json& answer, bool remembered = true) {
    const auto shown = as_shown(answer);
    if (!shown || !ask()) return false;
    sched::Finished finished{.stop = sched::StopKind::end_of_generation, .tail = {.text = shown->first}};
    finished.generated = tokenizer.tokenize(shown->first, false, true);
    if (remembered) finished.end_token = shown->second;
    engine.requests.back().sink->on_finished(std::move(finished));
    responder_->run();
    body["messages"].push_back(responder_->json()["choices"][0]["message"]);
    return true;
  }

  // The draft of what there is so far, rendered as a whole.
  Result<CompletionDraft> whole() {
    const HttpRequest http{.method = "POST", .path = "/v1/chat/completions", .body = body.dump()};
    return read_draft(Call{*router().context(), http, {}, {}}, ApiKind::chat, Rendering::whole);
  }

  Router& router() {
    if (!router_) {
      Services services{.tokenizer = tokenizer,
                        .samplers = samplers_,
                        .templates = templates_,
                        .engine = engine,
                        .metrics = metrics,
                        .model = {.id = "m", .n_ctx = 1'000'000, .n_slots = 1},
                        .limits = {},
                        .turns = &turns};
      router_.emplace(std::move(services));
    }
    return *router_;
  }

  Json body;
  MarkupTokenizer tokenizer;
  FakeEngine engine;
  obs::Metrics metrics;
  session::TurnMemory turns{{}};

 private:
  // What the model writes, as the template shows this answer, and the token that ends it; nothing if none does.
  std::optional<std::pair<std::string, Token>> as_shown(const Json& answer) {
    const auto prompt = templates_.render_text(body);
    Json ended = body;
    ended["messages"].push_back(answer);
    ended["add_generation_prompt"] = false;
    const auto shown = templates_.render_text(ended);
    if (!prompt || !shown) return std::nullopt;
    const std::string_view text = *shown;
    const auto begin = static_cast<std::size_t>(std::ranges::mismatch(*prompt, text).in1 - prompt->begin());
    const std::size_t said = text.rfind(last_words_);
    if (said == std::string::npos || said < begin) return std::nullopt;
    for (std::size_t at = text.size(); at-- > said;) {
      const std::size_t n = MarkupTokenizer::special_bytes(text.substr(at));
      if (n == 0) continue;
      return std::pair(std::string(text.substr(begin, at - begin)),
                       tokenizer.tokenize(text.substr(at, n), false, true).front());
    }
    return std::nullopt;
  }

  const chat::Templates& templates_;
  std::string last_words_;
  int n_ = 0;
  std::shared_ptr<FakeResponder> responder_;
  FakeSamplerFactory samplers_;
  std::optional<Router> router_;
};

}  // namespace coppice::api
