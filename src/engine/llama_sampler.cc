#include "engine/llama_sampler.h"

#include <llama.h>

#include <cmath>
#include <exception>
#include <utility>

#include "engine/token_probs.h"
#include "sampling.h"

namespace coppice::engine {
namespace {

// What is left after the sampler chain, with its probabilities. A choice that was the only one has probability 1.
TokenProbs after_chain(common_sampler* chain, Token chosen, int n_top) {
  const llama_token_data_array* left = common_sampler_get_candidates(chain, /* do_sort = */ false);
  TokenProbs result;
  std::vector<TokenProb> candidates;
  for (std::size_t i = 0; i < left->size; ++i) {
    const llama_token_data& c = left->data[i];
    if (!(c.p > 0)) continue;  // ruled out
    candidates.push_back({c.id, std::log(c.p)});
    if (c.id == chosen) result.chosen = candidates.back().logprob;
  }
  result.top = best(std::move(candidates), n_top);
  return result;
}

Token first_end_token(const llama_vocab* vocab) {
  const std::int32_t n = llama_vocab_n_tokens(vocab);
  if (const Token eos = llama_vocab_eos(vocab); eos != LLAMA_TOKEN_NULL && llama_vocab_is_eog(vocab, eos)) return eos;
  for (Token t = 0; t < n; ++t) {
    if (llama_vocab_is_eog(vocab, t)) return t;
  }
  return 0;  // a vocabulary without an end: only n_predict ends this generation
}

}  // namespace

LlamaSampler::LlamaSampler(common_sampler* chain, const llama_vocab* vocab) : chain_(chain), vocab_(vocab) {}
LlamaSampler::~LlamaSampler() = default;

void LlamaSampler::Free::operator()(common_sampler* chain) const { common_sampler_free(chain); }

void LlamaSampler::accept_prompt(std::span<const Token> prompt) {
  try {
    // Not generated: penalties and DRY see the tokens, the grammar does not.
    for (Token token : prompt) common_sampler_accept(chain_.get(), token, /* is_generated = */ false);
  } catch (const std::exception&) {
    exhausted_ = true;
  }
}

Sampled LlamaSampler::end_of_generation() {
  exhausted_ = true;
  return {.token = first_end_token(vocab_), .logprob = 0, .top = {}};
}

Token LlamaSampler::choose(llama_context* context, std::int32_t index) try {
  const Token token = common_sampler_sample(chain_.get(), context, index);
  const llama_token_data_array* left = common_sampler_get_candidates(chain_.get(), /* do_sort = */ false);
  if (left->selected < 0 || static_cast<std::size_t>(left->selected) >= left->size) return -1;
  // If everything was ruled out, the chain still picks something, with a logit of minus infinity.
  const float logit = left->data[left->selected].logit;
  return std::isnan(logit) || logit == -INFINITY ? -1 : token;
} catch (const std::exception&) {
  return -1;
}

Sampled LlamaSampler::sample(llama_context* context, std::int32_t index, const ProbsOptions& probs) {
  if (exhausted_) return end_of_generation();
  const Token token = choose(context, index);
  if (token < 0) return end_of_generation();

  Sampled result{.token = token, .logprob = 0, .top = {}};
  if (probs.n_probs > 0) {
    TokenProbs found;
    if (probs.post_sampling) {
      found = after_chain(chain_.get(), token, probs.n_probs);
    } else {
      const auto n_vocab = static_cast<std::size_t>(llama_vocab_n_tokens(vocab_));
      found = log_softmax({llama_get_logits_ith(context, index), n_vocab}, token, probs.n_probs);
    }
    result.logprob = found.chosen;
    result.top = std::move(found.top);
  }
  try {
    common_sampler_accept(chain_.get(), token, /* is_generated = */ true);
  } catch (const std::exception&) {
    // A lazy grammar was switched on by this token, and refuses what was said up to it. The token was chosen freely, so
    // it stands; nothing can follow.
    exhausted_ = true;
  }
  return result;
}

}  // namespace coppice::engine
