// One generation's sampling state, and the factory that makes it from what a client asked for.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "base/json_fwd.h"

namespace coppice::engine {

struct TokenProb {
  Token token = 0;
  float logprob = 0;  // natural logarithm; with `post_sampling` the probability itself is exp(logprob) too
};

struct Sampled {
  Token token = 0;
  float logprob = 0;
  std::vector<TokenProb> top;  // the n_probs most likely, best first; empty when none were asked for
};

struct ProbsOptions {
  int n_probs = 0;             // how many alternatives to report for each token; 0: none
  bool post_sampling = false;  // probabilities after the sampler chain instead of before it
};

// Opaque to all but the runner that made it. Made on any thread, then used on the engine thread only.
class Sampler {
 public:
  virtual ~Sampler() = default;
  // Shows the sampler a prompt token, for penalties and DRY. Call for the whole prompt, in order, before sampling.
  virtual void accept_prompt(std::span<const Token> prompt) = 0;
};

// A word or pattern that switches a lazy grammar on.
struct GrammarTrigger {
  int type = 0;  // llama-common's common_grammar_trigger_type
  std::string value;
  Token token = -1;
  friend bool operator==(const GrammarTrigger&, const GrammarTrigger&) = default;
};

// What the chat template and its tool parser demand of the output, beside what the client asked for.
struct ChatConstraint {
  enum class GrammarKind : std::uint8_t { none, user, output_format, tool_calls };
  GrammarKind grammar_kind = GrammarKind::none;
  std::string grammar;  // GBNF
  bool grammar_lazy = false;
  std::vector<GrammarTrigger> grammar_triggers;
  std::vector<std::string> preserved_tokens;  // special tokens that must reach the parser as text
  std::string generation_prompt;              // what the template put after the last message
  std::string thinking_start_tag;
  std::vector<std::string> thinking_end_tags;
  int reasoning_budget_tokens = -1;  // -1: no limit
  std::string reasoning_budget_message;
  friend bool operator==(const ChatConstraint&, const ChatConstraint&) = default;
};

class SamplerFactory {
 public:
  virtual ~SamplerFactory() = default;

  // Thread-safe. `body` is the request's JSON object; the fields of llama-server's sampling API are read from it
  // (docs/api.md lists them), others ignored. Errors: invalid_request naming the field, for a wrong type, a value out
  // of range or a grammar that does not compile. A missing or null field takes the server's default.
  virtual Result<std::unique_ptr<Sampler>> make(const Json& body, const ChatConstraint& constraint) const = 0;

  // The effective sampling settings for `body`, as llama-server names them (for /props and generation_settings).
  virtual Json settings(const Json& body) const = 0;
};

}  // namespace coppice::engine
