// One streamed completion: the request as JSON, and what its events say. Times are the client's own; counts are the
// server's, from `timings` or else `usage`; of a server that gives neither, times alone are known.
#pragma once

#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "client/chat_message.h"
#include "client/sse.h"
#include "client/url.h"
#include "stats/tokens.h"

namespace coppice::bench {

using Json = nlohmann::json;

struct CompletionRequest {
  Tokens prompt;
  int n_answer = 1;     // exactly so many tokens
  std::string session;  // empty: none
  Json messages;        // a chat in place of the prompt, unless null; its length and answer are up to `options`
  Json options;         // further fields of the body, unless null
};

struct Completion {
  double first_ms = 0;  // until the first event with a token of the answer
  double total_ms = 0;  // until the end of the stream
  double token_gap_ms_max = 0;
  std::int64_t n_answer = 0;               // without a count, the events with text
  std::optional<std::int64_t> n_prompt;    // tokens of the prompt, if the server says so
  std::optional<std::int64_t> n_computed;  // of the prompt; unknown to those who do not say what was cached
  std::optional<double> prefill_ms;        // as the server says
  Json message;                            // of a chat: the assistant's, as clients send it back; else null
};

// `model` as the server calls it. A prompt's answer gets its length and tokens by extensions of llama-server.
Json completion_json(const CompletionRequest& request, const std::string& model, const Vocabulary& vocabulary);

// Takes the stream of one answer apart. Pure: it is told the time of each piece.
class CompletionReader {
 public:
  void feed(std::string_view bytes, double now_ms);
  // At the stream's end: an error if it was none of a whole answer.
  Result<Completion> finish(int status, double now_ms) const;

 private:
  void read_event(const Json& event, double now_ms);

  SseParser sse_;
  std::string raw_;  // the beginning, for error messages
  std::string error_;
  Completion answer_;
  ChatMessage message_;
  Json usage_, timings_;
  std::optional<double> last_token_ms_;
  bool done_ = false;
};

Result<Completion> complete(const Url& server, const CompletionRequest& request, const std::string& model,
                            const Vocabulary& vocabulary);

}  // namespace coppice::bench
