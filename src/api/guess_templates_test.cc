// How often the prompt of a turn that goes on is guessed right, over the chat templates of llama.cpp's release, with a
// model that writes exactly what the template shows of its answers. Prints the table of docs/testing.md.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>

#include "api/chat_guess.h"
#include "api/completion_draft.h"
#include "api/fakes.h"
#include "chat/template_core.h"

namespace coppice::api {
namespace {

// Every byte is a token, and so is everything that looks like a special token of some model.
class MarkupTokenizer final : public engine::Tokenizer {
 public:
  std::size_t piece_bytes_max() const override { return 64; }
  Tokens tokenize(std::string_view text, bool, bool parse_special) const override {
    Tokens out;
    while (!text.empty()) {
      const std::size_t n = parse_special ? special_bytes(text) : 0;
      out.push_back(n > 0 ? special(std::string(text.substr(0, n))) : static_cast<unsigned char>(text.front()));
      text.remove_prefix(std::max<std::size_t>(n, 1));
    }
    return out;
  }
  std::string piece(Token token, bool) const override {
    if (token < kSpecial) return {static_cast<char>(token)};
    return names_.at(static_cast<std::size_t>(token - kSpecial));
  }
  bool is_end_of_generation(Token) const override { return false; }
  std::int32_t n_vocab() const override { return 100'000; }

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
  static constexpr Token kSpecial = 256;
  Token special(const std::string& name) const {
    const auto [at, is_new] = ids_.try_emplace(name, static_cast<Token>(kSpecial + names_.size()));
    if (is_new) names_.push_back(name);
    return at->second;
  }
  mutable std::map<std::string, Token> ids_;
  mutable std::vector<std::string> names_;
};

std::string source_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

Json tool() {
  return Json::parse(R"([{"type":"function","function":{"name":"look_up","description":"Looks up a name.",
    "parameters":{"type":"object","required":["name"],"properties":{"name":{"type":"string"}}}}}])");
}

struct Kind {
  const char* name;
  bool calls, reasons;
  int right_min, wrong_max;  // of all templates, as found
};
constexpr Kind kKinds[] = {{"tool loop", true, false, 32, 2},
                           {"tool loop, reasoning", true, true, 40, 3},
                           {"user turns", false, false, 40, 0},
                           {"user turns, reasoning", false, true, 35, 0}};

enum class Outcome : std::uint8_t {
  right,
  wrong,      // and replaced
  missed,     // no guess, though the prompt goes on from the turn's tokens
  no_turn,    // it does not: the template changes what was said, or shows it in part
  no_ending,  // the template does not show where an answer ends, so there is no turn to try
};
constexpr const char* kOutcomes[] = {"right", "wrong", "missed", "no turn", "no ending"};

// One conversation of one kind with a model whose answers look as the template shows them.
class Conversation {
 public:
  Conversation(const chat::Templates& templates, Kind kind) : templates_(templates), kind_(kind) {
    body_ = {{"messages", Json::array({{{"role", "user"}, {"content", "What is it?"}}})}};
    if (kind.calls) body_["tools"] = tool();
    for (int i = 0; i < 2; ++i) {
      body_["messages"].push_back(intended());
      reply(body_["messages"], body_["messages"].back());
    }
  }

  // The second turn of ours is the first that can be guessed.
  Outcome run() {
    if (!take_turn() || !ask()) return Outcome::no_ending;
    const bool continued = continues_rightly();
    if (guessed("right")) return Outcome::right;
    if (guessed("wrong")) return Outcome::wrong;
    return continued ? Outcome::missed : Outcome::no_turn;
  }

 private:
  // What the model means to say next.
  Json intended() {
    const std::string number = std::to_string(++n_), id = "abcdefg" + std::to_string(10 + n_);
    Json out = {{"role", "assistant"}, {"content", kind_.calls ? Json("") : Json("ANSWER-" + number)}};
    if (kind_.reasons) out["reasoning_content"] = "THOUGHT-" + number;
    if (!kind_.calls) return out;
    const Json function = {{"name", "look_up"}, {"arguments", R"({"name":"NAME-)" + number + "\"}"}};
    out["tool_calls"] = Json::array({{{"id", id}, {"type", "function"}, {"function", function}}});
    return out;
  }

  // What a client adds after `answer`.
  void reply(Json& messages, const Json answer) {
    const std::string number = std::to_string(n_);
    for (const Json& call : answer.value("tool_calls", Json::array())) {
      const Json id = call["id"];
      messages.push_back(
          {{"role", "tool"}, {"tool_call_id", id}, {"name", "look_up"}, {"content", "RESULT-" + number}});
    }
    if (messages.back()["role"] != "tool") messages.push_back({{"role", "user"}, {"content", "QUESTION-" + number}});
  }

  // What the model writes, as the template shows the last answer, and the token that ends it; nothing if none does.
  std::optional<std::pair<std::string, Token>> as_shown(const Json& answer) {
    const auto prompt = templates_.render_text(body_);
    Json ended = body_;
    ended["messages"].push_back(answer);
    ended["add_generation_prompt"] = false;
    const auto shown = templates_.render_text(ended);
    if (!prompt || !shown) return std::nullopt;
    const std::string_view text = *shown;
    const auto begin = static_cast<std::size_t>(std::ranges::mismatch(*prompt, text).in1 - prompt->begin());
    const std::string last_words = (kind_.calls ? "NAME-" : "ANSWER-") + std::to_string(n_);
    const std::size_t said = text.rfind(last_words);
    if (said == std::string::npos || said < begin) return std::nullopt;
    for (std::size_t at = text.size(); at-- > said;) {
      const std::size_t n = MarkupTokenizer::special_bytes(text.substr(at));
      if (n == 0) continue;
      return std::pair(std::string(text.substr(begin, at - begin)),
                       tokenizer_.tokenize(text.substr(at, n), false, true).front());
    }
    return std::nullopt;
  }

  // Sends what there is so far. False if it was answered with an error.
  bool ask() {
    responder_ = std::make_shared<FakeResponder>();
    router_.handle({.method = "POST", .path = "/v1/chat/completions", .body = body_.dump()}, responder_);
    responder_->run();
    return !engine_.requests.empty() && responder_->n_sent == 0;
  }

  bool take_turn() {
    const auto shown = as_shown(intended());
    if (!shown || !ask()) return false;
    sched::Finished finished{.stop = sched::StopKind::end_of_generation, .tail = {.text = shown->first}};
    finished.generated = tokenizer_.tokenize(shown->first, false, true);
    finished.end_token = shown->second;
    engine_.requests.back().sink->on_finished(std::move(finished));
    responder_->run();
    const Json message = responder_->json()["choices"][0]["message"];
    body_["messages"].push_back(message);
    reply(body_["messages"], message);
    return true;
  }

  // What the engine was given last must be what rendering the whole gives, guess or not. Whether that goes on from
  // tokens of ours.
  bool continues_rightly() {
    const HttpRequest http{.method = "POST", .path = "/v1/chat/completions", .body = body_.dump()};
    const auto whole = read_draft(Call{*router_.context(), http, {}, {}}, ApiKind::chat, Rendering::whole);
    EXPECT_TRUE(whole);
    if (!whole) return false;
    EXPECT_EQ(*engine_.requests.back().prompt, whole->prompts.front());
    return whole->continued;
  }

  bool guessed(const std::string& result) {
    return metrics_.text().find("coppice_prompt_guesses_total{result=\"" + result + "\"} 1") != std::string::npos;
  }

  const chat::Templates& templates_;
  const Kind kind_;
  Json body_;
  int n_ = 0;
  std::shared_ptr<FakeResponder> responder_;
  MarkupTokenizer tokenizer_;
  FakeSamplerFactory samplers_;
  FakeEngine engine_;
  obs::Metrics metrics_;
  session::TurnMemory turns_{{}};
  Router router_{Services{.tokenizer = tokenizer_,
                          .samplers = samplers_,
                          .templates = templates_,
                          .engine = engine_,
                          .metrics = metrics_,
                          .model = {.id = "m", .n_ctx = 1'000'000, .n_slots = 1},
                          .limits = {},
                          .turns = &turns_}};
};

std::vector<std::filesystem::path> template_paths() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(COPPICE_TEMPLATE_DIR)) {
    if (entry.path().extension() == ".jinja") paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  return paths;
}

TEST(GuessedTemplates, B23_NeverAWrongPromptAndMostlyARightGuess) {
  std::map<std::string, std::map<Outcome, int>> counts;  // by kind
  for (const auto& path : template_paths()) {
    SCOPED_TRACE(path.stem().string());
    auto templates = chat::make_templates_from_source(source_of(path), "<s>", "</s>", {.prefill_assistant = false});
    ASSERT_TRUE(templates) << templates.error().message;
    std::cout << path.stem().string() << ":";
    for (const Kind& kind : kKinds) {
      const Outcome outcome = Conversation(**templates, kind).run();
      ++counts[kind.name][outcome];
      std::cout << "  " << kind.name << ": " << kOutcomes[static_cast<int>(outcome)];
    }
    std::cout << std::endl;
  }
  for (auto& [kind, count] : counts) {
    std::cout << kind << ":";
    for (int i = 0; i < std::ssize(kOutcomes); ++i) {
      std::cout << "  " << count[static_cast<Outcome>(i)] << " " << kOutcomes[i];
    }
    std::cout << std::endl;
  }
  for (const Kind& kind : kKinds) {
    EXPECT_GE(counts[kind.name][Outcome::right], kind.right_min) << kind.name;
    EXPECT_LE(counts[kind.name][Outcome::wrong], kind.wrong_max) << kind.name;
  }
}

}  // namespace
}  // namespace coppice::api
