// A runner without a model, for tests and simulation. What it "computes" depends on exactly the cells that a sequence
// sees:
//
// - evaluating a token makes a cell whose KV is a hash of the token, its position and everything visible before it
// - the next token is a hash of the KV of all cells that the sequence sees
//
// So any wrong sharing, a missing or foreign cell, or a shifted position changes the output, as it should with a model.
// generate() computes the same output from the prompt alone; every whole-system test compares with it.
//
// Saved bytes are the KV hashes of the cells, so that a block restored in a wrong place changes the output, too. Where
// cells are not enough (Rewind::window, never) a checkpoint has the sequence's state as well: the sum that its cells
// should add up to. Where the two disagree, the output is another one.
//
// It keeps one record per cell (the naive model of kv/cell_map.h) and asserts the preconditions of Runner.
#pragma once

#include <bitset>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/runner.h"
#include "engine/tokenizer.h"

namespace coppice::engine {

struct FakeRunnerOptions {
  TokenPos n_cells = 1024;
  std::int32_t n_seqs = 4;
  TokenPos n_batch = 64;
  Rewind rewind = Rewind::anywhere;
  TokenPos window = 0;           // for Rewind::window
  Token n_vocab = 1000;          // generated tokens are below it
  std::uint32_t eog_one_in = 0;  // about one generated token in this many is kEndOfGeneration; 0: none
};

class FakeRunner final : public Runner {
 public:
  static constexpr Token kEndOfGeneration = 0;

  explicit FakeRunner(const FakeRunnerOptions& options);

  const RunnerInfo& info() const override { return info_; }
  void share(SeqId from, SeqId to, TokenPos begin, TokenPos end) override;
  bool remove(SeqId seq, TokenPos begin, TokenPos end) override;
  void clear(SeqId seq) override;
  bool can_resume(SeqId seq, TokenPos length, TokenPos at) const override;
  void share_cells(SeqId from, SeqId to, TokenPos end) override;
  std::vector<std::byte> save(SeqId seq, TokenPos begin, TokenPos end, SaveKind kind) override;
  bool restore(SeqId seq, TokenPos begin, TokenPos end, const Saved& saved) override;
  DecodeStatus decode(std::span<const BatchItem> batch) override;
  Sampled sample(Sampler& sampler, std::int32_t index, const ProbsOptions& probs) override;

  TokenPos used() const;  // cells that some sequence sees
  TokenPos length(SeqId seq) const;
  std::uint64_t tokens_evaluated() const { return tokens_evaluated_; }
  std::uint64_t tokens_restored() const { return tokens_restored_; }
  std::uint64_t states_restored() const { return states_restored_; }
  void fail_next_decode(DecodeStatus status) { fail_next_ = status; }
  void refuse_next_restore() { refuse_next_restore_ = true; }
  std::function<void(std::span<const BatchItem>)> on_decode;  // sees every batch before it runs
  std::function<void()> on_save;                              // before anything is saved

  // The `count` tokens that follow `prompt`, computed without any reuse; ends early after kEndOfGeneration.
  static Tokens generate(const FakeRunnerOptions& options, const Tokens& prompt, std::size_t count);

  std::unique_ptr<Sampler> make_sampler() const;

 private:
  static constexpr std::size_t kMaxSeqs = 256;
  struct Cell {
    TokenPos pos = 0;
    std::uint64_t kv = 0;
    std::bitset<kMaxSeqs> seqs;
  };
  struct Seq {
    std::vector<std::size_t> cells;  // by position
    std::uint64_t visible = 0;       // sum of the KV of its cells
    TokenPos window_begin = 0;       // first position that a windowed memory still holds
    bool cells_only = false;         // without the state that belongs to them
    std::uint64_t wrong_state = 0;   // by how much the state differs from what its cells add up to
    std::uint64_t seen() const { return visible + wrong_state * 0x9E3779B97F4A7C15ULL; }
  };

  Seq& seq(SeqId id);
  const Seq& seq(SeqId id) const;
  void release(std::size_t cell, SeqId id);
  void append(SeqId id, std::span<const std::byte> kv);
  bool take_cell(std::size_t& cell);

  FakeRunnerOptions options_;
  RunnerInfo info_;
  std::vector<Cell> cells_;
  std::vector<std::size_t> free_;
  std::vector<Seq> seqs_;
  std::vector<std::uint64_t> last_visible_;  // per item of the last batch
  std::uint64_t tokens_evaluated_ = 0, tokens_restored_ = 0, states_restored_ = 0;
  DecodeStatus fail_next_ = DecodeStatus::ok;
  bool refuse_next_restore_ = false;
};

// Tokens are their own text: token n is rendered as "<n>", tokenize() reads that back, other bytes are their own value.
class FakeTokenizer final : public Tokenizer {
 public:
  explicit FakeTokenizer(Token n_vocab) : n_vocab_(n_vocab) {}
  Tokens tokenize(std::string_view text, bool add_special, bool parse_special) const override;
  std::string piece(Token token, bool special) const override;
  bool is_end_of_generation(Token token) const override { return token == FakeRunner::kEndOfGeneration; }
  std::int32_t n_vocab() const override { return n_vocab_; }
  std::size_t piece_bytes_max() const override { return 16; }

 private:
  Token n_vocab_;
};

}  // namespace coppice::engine
