// A model under the reuse oracle: its runner, and the few operations that the cases are written with.
//
// Every operation that can fail reports a test failure itself. One thread.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "engine/llama_model.h"
#include "engine/llama_runner.h"

namespace coppice::oracle {

using Logits = std::vector<float>;  // rows of n_vocab, one for each evaluated token that wanted them

// mean((a - b)^2) / mean(reference^2). REQUIRES: equal sizes.
double nmse(const Logits& reference, const Logits& other);

class Subject {
 public:
  // Null, with a test failure, if the model cannot be loaded.
  static std::unique_ptr<Subject> load(const std::string& file);

  engine::Runner& runner() { return *runner_; }
  engine::Rewind rewind() const { return runner_->info().rewind; }
  const engine::Tokenizer& tokenizer() const { return *tokenizer_; }

  // Evaluates prompt[begin, end) in `seq`, which holds the tokens before, in batches of at most `chunk` tokens. Returns
  // the logits after each of the last `want` tokens.
  Logits decode(SeqId seq, std::span<const Token> prompt, TokenPos begin, TokenPos end, TokenPos want = 0,
                TokenPos chunk = 512);

  // Evaluates one token of each sequence, at the same position, in one batch. Returns the logits of the first.
  Logits decode_together(std::span<const SeqId> seqs, std::span<const Token> tokens, TokenPos pos);

  void share(SeqId from, SeqId to, TokenPos begin, TokenPos end) { runner_->share(from, to, begin, end); }
  bool remove(SeqId seq, TokenPos begin, TokenPos end) { return runner_->remove(seq, begin, end); }
  void clear_all();

 private:
  Subject() = default;
  void evaluate(std::span<const engine::BatchItem> batch, Logits& out);

  std::unique_ptr<engine::LlamaModel> model_;
  std::unique_ptr<engine::Runner> runner_;
  std::unique_ptr<engine::Tokenizer> tokenizer_;
};

}  // namespace coppice::oracle
