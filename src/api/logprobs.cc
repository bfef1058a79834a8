#include "api/logprobs.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string>

#include "base/json.h"

namespace coppice::api {
namespace {

// What OpenAI documents for "very unlikely". JSON has no infinity.
constexpr double kLogprobMin = -9999.0;

double finite(float logprob) { return std::isfinite(logprob) ? std::max<double>(logprob, kLogprobMin) : kLogprobMin; }

Json bytes_of(const std::string& text) {
  Json out = Json::array();
  for (const char c : text) out.push_back(static_cast<unsigned char>(c));
  return out;
}

std::span<const engine::TokenProb> shown(const sched::TokenText& token, const ProbsFormat& format) {
  const auto n = std::min<std::size_t>(token.sampled.top.size(), static_cast<std::size_t>(format.n_alternatives));
  return std::span(token.sampled.top).first(n);
}

Json native_entry(Token token, const std::string& text, float logprob, const ProbsFormat& format) {
  Json out = {{"id", token}, {"token", text}, {"bytes", bytes_of(text)}};
  if (format.post_sampling) {
    out["prob"] = std::exp(finite(logprob));
  } else {
    out["logprob"] = finite(logprob);
  }
  return out;
}

Json chat_entry(const std::string& text, float logprob) {
  return {{"token", text}, {"logprob", finite(logprob)}, {"bytes", bytes_of(text)}};
}

}  // namespace

Json native_probs(const std::vector<sched::TokenText>& tokens, const ProbsFormat& format) {
  Json out = Json::array();
  for (const auto& token : tokens) {
    Json top = Json::array();
    for (const auto& other : shown(token, format)) {
      top.push_back(native_entry(other.token, format.tokenizer.piece(other.token, true), other.logprob, format));
    }
    Json entry = native_entry(token.sampled.token, token.piece, token.sampled.logprob, format);
    entry[format.post_sampling ? "top_probs" : "top_logprobs"] = std::move(top);
    out.push_back(std::move(entry));
  }
  return out;
}

Json chat_logprobs(const std::vector<sched::TokenText>& tokens, const ProbsFormat& format) {
  Json content = Json::array();
  for (const auto& token : tokens) {
    Json top = Json::array();
    for (const auto& other : shown(token, format)) {
      top.push_back(chat_entry(format.tokenizer.piece(other.token, true), other.logprob));
    }
    Json entry = chat_entry(token.piece, token.sampled.logprob);
    entry["top_logprobs"] = std::move(top);
    content.push_back(std::move(entry));
  }
  return {{"content", std::move(content)}};
}

Json completion_logprobs(const std::vector<sched::TokenText>& tokens, const ProbsFormat& format, std::size_t& offset) {
  Json texts = Json::array(), logprobs = Json::array(), tops = Json::array(), offsets = Json::array();
  for (const auto& token : tokens) {
    texts.push_back(token.piece);
    logprobs.push_back(finite(token.sampled.logprob));
    Json top = Json::object();
    // Two tokens can have one text; the likelier comes first and stays.
    for (const auto& other : shown(token, format)) {
      top.emplace(format.tokenizer.piece(other.token, true), finite(other.logprob));
    }
    tops.push_back(std::move(top));
    offsets.push_back(offset);
    offset += token.piece.size();
  }
  return {{"tokens", std::move(texts)},
          {"token_logprobs", std::move(logprobs)},
          {"top_logprobs", std::move(tops)},
          {"text_offset", std::move(offsets)}};
}

}  // namespace coppice::api
