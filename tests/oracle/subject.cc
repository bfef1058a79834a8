#include "subject.h"

#include <gtest/gtest.h>
#include <llama.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "engine/backends.h"

namespace coppice::oracle {

double nmse(const Logits& reference, const Logits& other) {
  assert(reference.size() == other.size());
  double difference = 0, power = 0;
  for (std::size_t i = 0; i < reference.size(); ++i) {
    const double a = reference[i], b = other[i];
    difference += (a - b) * (a - b);
    power += a * a;
  }
  return difference / power;
}

std::unique_ptr<Subject> Subject::load(const std::string& file) {
  const Result<void> backends = engine::load_backends(COPPICE_BACKEND_DIR);
  if (!backends) {
    ADD_FAILURE() << backends.error().message;
    return nullptr;
  }
  Result<engine::LlamaConfig> config = engine::LlamaConfig::parse({"-m", file, "-c", "4096", "-t", "1", "--no-warmup"});
  if (!config) {
    ADD_FAILURE() << config.error().message;
    return nullptr;
  }
  engine::LoadOptions options;
  options.backend_dir = COPPICE_BACKEND_DIR;
  options.n_slots = 8;
  Result<std::unique_ptr<engine::LlamaModel>> model = engine::LlamaModel::load(std::move(*config), options);
  if (!model) {
    ADD_FAILURE() << file << ": " << model.error().message;
    return nullptr;
  }
  std::unique_ptr<Subject> subject(new Subject);
  subject->model_ = std::move(*model);
  subject->runner_ = engine::make_llama_runner(*subject->model_);
  subject->tokenizer_ = engine::make_llama_tokenizer(*subject->model_);
  return subject;
}

void Subject::evaluate(std::span<const engine::BatchItem> batch, Logits& out) {
  const engine::DecodeStatus status = runner_->decode(batch);
  ASSERT_EQ(status, engine::DecodeStatus::ok);
  const auto n_vocab = static_cast<std::size_t>(tokenizer_->n_vocab());
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (!batch[i].want_logits) continue;
    // The runner has no need to hand out logits; the oracle reads them where they lie.
    const float* row = llama_get_logits_ith(model_->context(), static_cast<std::int32_t>(i));
    ASSERT_NE(row, nullptr);
    out.insert(out.end(), row, row + n_vocab);
  }
}

Logits Subject::decode(SeqId seq, std::span<const Token> prompt, TokenPos begin, TokenPos end, TokenPos want,
                       TokenPos chunk) {
  assert(0 <= begin && begin < end && static_cast<std::size_t>(end) <= prompt.size());
  Logits out;
  for (TokenPos from = begin; from < end; from += chunk) {
    const TokenPos to = std::min(end, from + chunk);
    std::vector<engine::BatchItem> batch;
    for (TokenPos pos = from; pos < to; ++pos) {
      batch.push_back({prompt[static_cast<std::size_t>(pos)], pos, seq, pos >= end - want});
    }
    evaluate(batch, out);
  }
  return out;
}

Logits Subject::decode_together(std::span<const SeqId> seqs, std::span<const Token> tokens, TokenPos pos) {
  std::vector<engine::BatchItem> batch;
  for (std::size_t i = 0; i < seqs.size(); ++i) batch.push_back({tokens[i], pos, seqs[i], i == 0});
  Logits out;
  evaluate(batch, out);
  return out;
}

void Subject::clear_all() {
  for (std::int32_t i = 0; i < runner_->info().n_seqs; ++i) runner_->clear(SeqId(i));
}

}  // namespace coppice::oracle
