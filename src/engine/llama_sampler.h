// The Sampler of llama_runner: one generation's llama-common sampler chain. Internal to engine/.
//
// States, and what moves between them:
//
//   sampling --(no candidate is left, or the grammar refuses what was chosen)--> exhausted
//
// An exhausted sampler answers every further call with an end-of-generation token. That happens when a grammar allows
// only what the vocabulary or the client's logit_bias cannot produce; llama.cpp would pick a forbidden token there and
// then throw, or abort the process if that token ends the generation.
#pragma once

#include <memory>

#include "engine/sampler.h"

struct common_sampler;
struct llama_context;
struct llama_vocab;

namespace coppice::engine {

class LlamaSampler final : public Sampler {
 public:
  // Takes ownership of `chain`. REQUIRES: it was made for the model of `vocab`.
  LlamaSampler(common_sampler* chain, const llama_vocab* vocab);
  ~LlamaSampler() override;

  void accept_prompt(std::span<const Token> prompt) override;

  // Samples after output `index` of the context's last batch and accepts the choice. REQUIRES: it has logits.
  Sampled sample(llama_context* context, std::int32_t index, const ProbsOptions& probs);

 private:
  struct Free {
    void operator()(common_sampler* chain) const;
  };

  Sampled end_of_generation();
  // The chain's choice, or -1 if it had none.
  Token choose(llama_context* context, std::int32_t index);

  std::unique_ptr<common_sampler, Free> chain_;
  const llama_vocab* vocab_;
  bool exhausted_ = false;
};

}  // namespace coppice::engine
