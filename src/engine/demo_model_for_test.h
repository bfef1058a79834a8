// The built-in model for tests: loaded once per process and context size, with what is made from it.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "engine/llama_runner.h"

namespace coppice::engine::testing {

struct DemoModel {
  std::unique_ptr<LlamaModel> model;
  std::unique_ptr<Runner> runner;
  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<SamplerFactory> samplers;

  explicit DemoModel(int n_cells = 1024, std::vector<std::string> more_args = {}) {
    std::vector<std::string> args{"-m", COPPICE_DEMO_MODEL, "-c", std::to_string(n_cells), "-t", "1", "--no-warmup"};
    args.insert(args.end(), more_args.begin(), more_args.end());
    auto config = LlamaConfig::parse(args);
    if (!config) throw std::runtime_error(config.error().message);
    auto loaded = LlamaModel::load(std::move(*config), {.backend_dir = COPPICE_BACKEND_DIR, .n_slots = 4});
    if (!loaded) throw std::runtime_error(loaded.error().message);
    model = *std::move(loaded);
    runner = make_llama_runner(*model);
    tokenizer = make_llama_tokenizer(*model);
    samplers = make_llama_sampler_factory(*model);
  }

  // Evaluates `tokens` from `pos` on, in steps of at most n_batch; logits for the last one, at the index returned.
  std::int32_t eval(SeqId seq, const Tokens& tokens, TokenPos pos = 0) {
    std::int32_t last = -1;
    for (std::size_t at = 0; at < tokens.size();) {
      std::vector<BatchItem> batch;
      for (; at < tokens.size() && batch.size() < static_cast<std::size_t>(runner->info().n_batch); ++at, ++pos) {
        batch.push_back({tokens[at], pos, seq, at + 1 == tokens.size()});
      }
      const DecodeStatus status = runner->decode(batch);
      EXPECT_EQ(status, DecodeStatus::ok);
      last = static_cast<std::int32_t>(batch.size()) - 1;
    }
    return last;
  }

  std::unique_ptr<Sampler> sampler(const Json& body, const ChatConstraint& constraint = {}) {
    auto made = samplers->make(body, constraint);
    if (!made) throw std::runtime_error(made.error().message);
    return *std::move(made);
  }

  // The log probability of every token, after output `index` of the last batch.
  std::vector<float> log_probs(std::int32_t index) {
    const auto greedy = sampler({{"temperature", 0}});
    const Sampled s = runner->sample(*greedy, index, {.n_probs = tokenizer->n_vocab()});
    std::vector<float> by_token(s.top.size());
    for (const TokenProb& p : s.top) by_token[static_cast<std::size_t>(p.token)] = p.logprob;
    return by_token;
  }

  // Up to `n` tokens after `prompt` in an empty sequence, the ending one included.
  Tokens generate(Sampler& sampler, const Tokens& prompt, int n) {
    const SeqId seq{3};
    runner->clear(seq);
    sampler.accept_prompt(prompt);
    Tokens out;
    std::int32_t index = eval(seq, prompt);
    while (static_cast<int>(out.size()) < n) {
      out.push_back(runner->sample(sampler, index, {}).token);
      if (tokenizer->is_end_of_generation(out.back())) break;
      index = eval(seq, {out.back()}, static_cast<TokenPos>(prompt.size() + out.size()) - 1);
    }
    runner->clear(seq);
    return out;
  }

  std::string generate_text(const Json& body, const std::string& prompt, int n, const ChatConstraint& constraint = {}) {
    const auto s = sampler(body, constraint);
    return tokenizer->text(generate(*s, tokenizer->tokenize(prompt, false, true), n), false);
  }
};

// Shared by the tests that run in one process; each leaves the sequences empty.
inline DemoModel& demo() {
  static DemoModel model;
  return model;
}

inline std::string ask(const std::string& question) {
  return "<|im_start|>user\n" + question + "<|im_end|>\n<|im_start|>assistant\n";
}

}  // namespace coppice::engine::testing
