// How one API words a completion. The exchange collects answers and calls the format of the route; each format makes
// either one JSON body or a stream of server-sent events out of them. Used by one exchange, on its tasks only.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/generation_fields.h"
#include "api/http.h"
#include "api/logprobs.h"
#include "api/report_json.h"
#include "base/json_fwd.h"
#include "chat/chat.h"
#include "engine/tokenizer.h"
#include "sched/request.h"

namespace coppice::api {

// One answer of an exchange, as far as it has come.
struct Answer {
  std::size_t index = 0;
  bool first_of_prompt = true;  // false for the further ones of n > 1
  std::shared_ptr<const Tokens> prompt;
  // What was generated; while streaming it is passed on instead of being kept here.
  sched::TextDelta output;
  bool finished = false;
  sched::StopKind stop = sched::StopKind::length;  // this and the rest: once finished
  std::string stop_word;
  sched::Report report;
  Tokens generated;  // without the one that ended it
  std::optional<Token> end_token;
};

// What is the same for all answers of an exchange.
struct FormatFacts {
  std::string id;  // "chatcmpl-..."
  std::int64_t created_unix_s = 0;
  std::string model, build;
  std::int32_t n_ctx = 0;
  SessionFacts session;
  GenerationFields generation;
  const engine::Tokenizer& tokenizer;

  ProbsFormat probs() const {
    return {.tokenizer = tokenizer,
            .n_alternatives = generation.n_alternatives,
            .post_sampling = generation.post_sampling_probs};
  }
};

class Format {
 public:
  virtual ~Format() = default;

  // Once, before all else, when the samplers have found `body` in order.
  virtual void on_accepted(const Json& /*body*/, const engine::SamplerFactory& /*samplers*/) {}

  // Before all that follows, when the prompt that the format was made with was a guess: this is what is certain.
  virtual void on_confirmed(const chat::Prompt& /*prompt*/, bool /*continued*/) {}

  // Streaming. Each returns the bytes to send, maybe none.
  virtual std::string on_begin() { return {}; }  // before all else
  virtual std::string on_silence();              // nothing was sent for a while; a comment, if not overridden
  virtual std::string on_progress(const Answer& answer, const sched::Progress& progress) = 0;
  virtual std::string on_delta(const Answer& answer, const sched::TextDelta& delta) = 0;
  virtual std::string on_finished(const Answer& answer, const sched::TextDelta& tail) = 0;
  virtual std::string on_end(const std::vector<Answer>& answers) = 0;  // after the last answer
  virtual std::string on_error(const Error& error) = 0;                // instead of everything that is still missing

  // The answer as it was parsed, and the ids that the client may send back for it. Valid once the answer was worded to
  // its end; null for formats of plain text.
  virtual const chat::Message* message(const Answer& /*answer*/) { return nullptr; }
  virtual std::vector<std::string> minted_ids(const Answer& /*answer*/) { return {}; }

  // Not streaming. REQUIRES: all are finished.
  virtual Json whole(const std::vector<Answer>& answers) = 0;
  virtual HttpResponse refusal(const Error& error) const;
};

// {"total","cache","processed","time_ms"}
Json progress_json(const sched::Progress& progress);

// Adds "timings" and "coppice".
void add_report(Json& object, const Answer& answer, const FormatFacts& facts);

// Adds what describes a whole response: "usage" over all answers, timings and coppice of the first; with several
// answers each choice carries its own as well. REQUIRES: all are finished.
void add_reports(Json& response, const std::vector<Answer>& answers, const FormatFacts& facts);

Usage usage_of(const std::vector<Answer>& answers);

}  // namespace coppice::api
