#include "support.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <map>
#include <string_view>
#include <thread>

namespace coppice::http_test {
namespace {

// Knuth's MMIX generator: small, and the same everywhere.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t below(std::uint64_t n) {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return (state_ >> 33U) % n;
  }
  template <std::size_t N>
  std::string pick(const std::array<std::string_view, N>& words) {
    return std::string(words[below(N)]);
  }
  std::string number(std::uint64_t from, std::uint64_t count) { return std::to_string(from + below(count)); }

 private:
  std::uint64_t state_;
};

constexpr std::array<std::string_view, 16> kNouns = {"apple",  "lamp",   "rope",   "chair",  "river",  "stone",
                                                     "bread",  "candle", "ladder", "hammer", "bottle", "basket",
                                                     "window", "garden", "bridge", "tower"};
constexpr std::array<std::string_view, 8> kAdjectives = {"small", "old",  "green", "cold",
                                                         "round", "tall", "dark",  "warm"};
constexpr std::array<std::string_view, 8> kItems = {"apples", "lamps",   "ropes",   "chairs",
                                                    "stones", "candles", "ladders", "hammers"};
constexpr std::array<std::string_view, 8> kNames = {"Zorbin", "Velmin", "Tirgan", "Tavley",
                                                    "Lodwen", "Marpin", "Kelder", "Durvis"};

std::string filler_line(Random& r) {
  std::string line;
  switch (r.below(3)) {
    case 0:
      line = "The " + r.pick(kAdjectives);
      line += " " + r.pick(kNouns);
      line += " stands near the " + r.pick(kAdjectives);
      return line += " " + r.pick(kNouns) + ".";
    case 1:
      line = "[" + r.number(10, 90);
      line += ":" + r.number(10, 90) + "]";
      line += " " + r.pick(kNouns);
      line += " " + r.number(100, 900) + ":";
      for (int i = 0; i < 3; ++i) line += " " + r.pick(kNouns);
      return line;
    default:
      line = "We saw " + r.number(1, 90);
      line += " " + r.pick(kItems);
      line += " and a " + r.pick(kNouns);
      return line += " on the way to " + r.pick(kNames) + ".";
  }
}

Json message(const char* role, const std::string& text) { return {{"role", role}, {"content", text}}; }

}  // namespace

void ServerTest::serve(const std::vector<std::string>& args) {
  stop();
  server_ = ServerProcess::start(args);
  ASSERT_NE(server_, nullptr);
  client_ = std::make_unique<Client>(server_->port());
}

void ServerTest::stop() { server_.reset(); }

Tokens ServerTest::tokenize(const std::string& text) const {
  return client().ask("/tokenize", {{"content", text}, {"add_special", true}}).at("tokens").get<Tokens>();
}

Tokens ServerTest::tokens_of(const Json& messages) const {
  return tokenize(client().ask("/apply-template", {{"messages", messages}}).at("prompt").get<std::string>());
}

double ServerTest::metric(const std::string& name) const {
  const std::string text = "\n" + client().get("/metrics").body;
  const std::size_t at = text.find("\n" + name + " ");
  return at == std::string::npos ? -1 : std::stod(text.substr(at + name.size() + 2));
}

Json ServerTest::slot(int id) const { return client().get("/slots").json().at(static_cast<std::size_t>(id)); }

bool eventually(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

Json system(const std::string& text) { return message("system", text); }
Json user(const std::string& text) { return message("user", text); }
Json assistant(const std::string& text) { return message("assistant", text); }

Json messages(std::initializer_list<Json> list) {
  Json out = Json::array();
  for (const Json& m : list) out.push_back(m);
  return out;
}

std::string filler(std::uint64_t seed, int lines) {
  Random random(seed);
  std::string text;
  for (int i = 0; i < lines; ++i) text += (i == 0 ? "" : "\n") + filler_line(random);
  return text;
}

Tokens random_tokens(std::uint64_t seed, std::size_t count) {
  constexpr std::uint64_t kPlain = 1200;  // ids from 100 on are ordinary words of the built-in tokenizer
  Random random(seed * 7919);
  Tokens tokens(count);
  for (Token& token : tokens) token = static_cast<Token>(100 + random.below(kPlain));
  if (count > 0) tokens[0] = static_cast<Token>(100 + seed % kPlain);
  return tokens;
}

TokenPos common_prefix(const Tokens& a, const Tokens& b) {
  const auto [end, other] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return static_cast<TokenPos>(end - a.begin());
}

TokenPos length(const Tokens& tokens) { return static_cast<TokenPos>(tokens.size()); }

Tokens joined(const Tokens& a, const Tokens& b) {
  Tokens out = a;
  out.insert(out.end(), b.begin(), b.end());
  return out;
}

Tokens first(const Tokens& tokens, TokenPos count) { return {tokens.begin(), tokens.begin() + count}; }

Json greedy(const Tokens& prompt, int n_predict) {
  return {{"prompt", prompt}, {"n_predict", n_predict}, {"temperature", 0}, {"return_tokens", true}};
}

Tokens held_after(const Tokens& prompt, const Json& answer) {
  Tokens made = answer.at("tokens").get<Tokens>();
  if (answer.at("stop_type") != "eos" && !made.empty()) made.pop_back();
  return joined(prompt, made);
}

std::string content(const Json& answer) {
  const Json& text = answer.at("choices").at(0).at("message").at("content");
  return text.is_string() ? text.get<std::string>() : "";
}

std::string Events::text() const {
  std::string out;
  for (const Json& event : list) {
    if (event.contains("content")) out += event["content"].get<std::string>();
    if (!event.contains("choices")) continue;
    for (const Json& choice : event["choices"]) {
      if (choice.contains("text")) out += choice["text"].get<std::string>();
      if (!choice.contains("delta") || !choice["delta"].contains("content")) continue;
      const Json& piece = choice["delta"]["content"];
      if (piece.is_string()) out += piece.get<std::string>();
    }
  }
  return out;
}

Events collect(Stream stream) {
  Events events{.status = stream.status(), .list = {}};
  for (Json event = stream.next_json(); !event.is_null(); event = stream.next_json()) events.list.push_back(event);
  stream.rest();
  events.done = stream.done();
  events.complete = stream.complete();
  return events;
}

bool agree(const Json& answer, const Json& cold) {
  const auto top = [](const Json& a) {
    std::map<Token, double> all;
    for (const Json& t : a["completion_probabilities"][0]["top_logprobs"]) all[t["id"]] = t["logprob"];
    return all;
  };
  const std::map<Token, double> ours = top(answer), theirs = top(cold);
  const auto likelier = [](const auto& a, const auto& b) { return a.second < b.second; };
  for (const auto& [one, other] : {std::pair(&ours, &theirs), std::pair(&theirs, &ours)}) {
    const auto favourite = std::max_element(one->begin(), one->end(), likelier);
    const auto there = other->find(favourite->first);
    if (there == other->end() || std::abs(there->second - favourite->second) > 0.3) return false;
  }
  return true;
}

}  // namespace coppice::http_test
