// What moving KV between the cells and host memory costs: by block size, against memcpy of the same bytes and against
// computing the same tokens. It is what the size of the tiers' blocks was chosen by (docs/tiers.md).
//
// The model is COPPICE_BENCH_MODEL, a GGUF, or the built-in one. A sequence of 2,048 tokens is saved and restored as a
// whole, block after block; one iteration is all of it. Each block's memcpy is timed right after it, so that other
// programs disturb both alike. Times are of the thread's CPU; the model runs on that thread alone.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <cstring>
#include <ctime>
#include <stdexcept>

#include "base/byte_buffers.h"
#include "engine/llama_runner.h"
#include "tier/block.h"

namespace coppice::engine {
namespace {

constexpr TokenPos kLength = 2048;
constexpr SeqId kHeld{0}, kOther{1};

double now_us() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

std::string bench_model() {
  const char* path = std::getenv("COPPICE_BENCH_MODEL");
  return path != nullptr ? path : COPPICE_DEMO_MODEL;
}

struct Ready {
  std::unique_ptr<LlamaModel> model;
  std::unique_ptr<Runner> runner;
  Tokens tokens;

  // kHeld holds the tokens.
  Ready() {
    // Room for two of the sequence, a block on its way, and what rounding adds.
    auto config = LlamaConfig::parse({"-m", bench_model(), "-c", "6144", "-t", "1", "--no-warmup"});
    if (!config) throw std::runtime_error(config.error().message);
    auto loaded = LlamaModel::load(std::move(*config), {.backend_dir = COPPICE_BACKEND_DIR, .n_slots = 3});
    if (!loaded) throw std::runtime_error(loaded.error().message);
    model = *std::move(loaded);
    runner = make_llama_runner(*model);
    if (!runner->info().saves_ranges) throw std::runtime_error("the model's KV cannot be saved in parts");
    for (TokenPos i = 0; i < kLength; ++i) tokens.push_back(i * 7919 % (model->summary().n_vocab / 2));
    compute(kHeld);
  }

  void compute(SeqId seq) {
    for (TokenPos at = 0; at < kLength;) {
      std::vector<BatchItem> batch;
      for (; at < kLength && static_cast<TokenPos>(batch.size()) < runner->info().n_batch; ++at) {
        batch.push_back({tokens[static_cast<std::size_t>(at)], at, seq, at + 1 == kLength});
      }
      if (runner->decode(batch) != DecodeStatus::ok) throw std::runtime_error("decode() failed");
    }
  }

  std::vector<std::byte> save(TokenPos begin, TokenPos end, SaveKind kind) {
    auto bytes = runner->save(kHeld, begin, end, kind);
    if (bytes.empty()) throw std::runtime_error("save() failed");
    return bytes;
  }

  void restore(TokenPos begin, const Runner::Saved& saved) {
    if (!runner->restore(kOther, begin, saved.end, saved)) throw std::runtime_error("restore() failed");
  }
};

Ready& ready() {
  static Ready one;
  return one;
}

// Time of something done, and of copying the bytes that it moved.
class Against {
 public:
  template <class Do>
  void time(const Do& work) {
    const double began = now_us();
    work();
    work_us_ += now_us() - began;
  }
  void copy(std::span<const std::byte> bytes) {
    if (to_.size() < bytes.size()) to_.resize(bytes.size());
    const double began = now_us();
    std::memcpy(to_.data(), bytes.data(), bytes.size());
    benchmark::DoNotOptimize(to_.data());
    benchmark::ClobberMemory();
    copy_us_ += now_us() - began;
    bytes_ += bytes.size();
    ++n_;
  }
  double work_us() const { return work_us_; }

  // `tokens` per iteration; 0 where their number says nothing.
  void report(benchmark::State& state, TokenPos tokens) const {
    state.SetBytesProcessed(static_cast<std::int64_t>(bytes_));
    state.counters["block_us"] = work_us_ / n_;
    state.counters["block_KiB"] = static_cast<double>(bytes_) / n_ / 1024;
    state.counters["to_memcpy"] = work_us_ / copy_us_;
    if (tokens > 0) {
      state.counters["us_per_token"] = work_us_ / (static_cast<double>(state.iterations()) * tokens);
    }
  }

 private:
  std::vector<std::byte> to_;
  double work_us_ = 0, copy_us_ = 0, n_ = 0;
  std::uint64_t bytes_ = 0;
};

void range_save(benchmark::State& state) {
  Ready& r = ready();
  const auto block = static_cast<TokenPos>(state.range(0));
  Against against;
  std::vector<std::byte> bytes = r.save(0, block, SaveKind::cells);  // its buffer is the first that is used again
  against.copy(bytes);
  against = {};
  for (auto _ : state) {
    const double before_us = against.work_us();
    for (TokenPos at = 0; at < kLength; at += block) {
      give_buffer(std::move(bytes));
      against.time([&] { bytes = r.save(at, at + block, SaveKind::cells); });
      against.copy(bytes);
    }
    state.SetIterationTime((against.work_us() - before_us) / 1e6);
  }
  give_buffer(std::move(bytes));
  against.report(state, kLength);
}
BENCHMARK(range_save)->RangeMultiplier(2)->Range(64, 1024)->UseManualTime()->Unit(benchmark::kMillisecond);

void range_restore(benchmark::State& state) {
  Ready& r = ready();
  const auto block = static_cast<TokenPos>(state.range(0));
  std::vector<std::vector<std::byte>> saved;
  for (TokenPos at = 0; at < kLength; at += block) saved.push_back(r.save(at, at + block, SaveKind::cells));
  Against against;
  for (auto _ : state) {
    r.runner->clear(kOther);
    const double before_us = against.work_us();
    for (TokenPos at = 0; at < kLength; at += block) {
      const std::vector<std::byte>& bytes = saved[static_cast<std::size_t>(at / block)];
      against.time([&] { r.restore(at, {at, at + block, bytes}); });
      against.copy(bytes);
    }
    state.SetIterationTime((against.work_us() - before_us) / 1e6);
  }
  r.runner->clear(kOther);
  against.report(state, kLength);
}
BENCHMARK(range_restore)->RangeMultiplier(2)->Range(64, 1024)->UseManualTime()->Unit(benchmark::kMillisecond);

void range_compute(benchmark::State& state) {
  Ready& r = ready();
  double us = 0;
  for (auto _ : state) {
    r.runner->clear(kOther);
    const double began = now_us();
    r.compute(kOther);
    const double took = now_us() - began;
    us += took;
    state.SetIterationTime(took / 1e6);
  }
  r.runner->clear(kOther);
  state.counters["us_per_token"] = us / (static_cast<double>(state.iterations()) * kLength);
}
BENCHMARK(range_compute)->UseManualTime()->Unit(benchmark::kMillisecond);

// The end of a chain, with so many cells and, where cells are not enough to go on from, the state.
void checkpoint_save(benchmark::State& state) {
  Ready& r = ready();
  const auto cells = static_cast<TokenPos>(state.range(0));
  Against against;
  std::vector<std::byte> bytes = r.save(kLength - cells, kLength, SaveKind::checkpoint);
  against.copy(bytes);
  against = {};
  for (auto _ : state) {
    give_buffer(std::move(bytes));
    const double before_us = against.work_us();
    against.time([&] { bytes = r.save(kLength - cells, kLength, SaveKind::checkpoint); });
    against.copy(bytes);
    state.SetIterationTime((against.work_us() - before_us) / 1e6);
  }
  give_buffer(std::move(bytes));
  against.report(state, 0);
}
BENCHMARK(checkpoint_save)->Arg(1)->Arg(256)->UseManualTime()->Unit(benchmark::kMicrosecond);

// Behind all cells before it, which another sequence has.
void checkpoint_restore(benchmark::State& state) {
  Ready& r = ready();
  const auto cells = static_cast<TokenPos>(state.range(0));
  const TokenPos begin = kLength - cells;
  const std::vector<std::byte> bytes = r.save(begin, kLength, SaveKind::checkpoint);
  const bool has_state = r.runner->info().rewind != Rewind::anywhere;
  Against against;
  for (auto _ : state) {
    r.runner->clear(kOther);
    if (has_state) {
      r.runner->share_cells(kHeld, kOther, begin);
    } else {
      r.runner->share(kHeld, kOther, 0, begin);
    }
    const double before_us = against.work_us();
    against.time([&] { r.restore(begin, {begin, kLength, bytes}); });
    against.copy(bytes);
    state.SetIterationTime((against.work_us() - before_us) / 1e6);
  }
  r.runner->clear(kOther);
  against.report(state, 0);
}
BENCHMARK(checkpoint_restore)->Arg(1)->Arg(256)->UseManualTime()->Unit(benchmark::kMicrosecond);

// A block's name.
void range_name(benchmark::State& state) {
  const Tokens tokens(static_cast<std::size_t>(state.range(0)), 77);
  tier::BlockId id{};
  for (auto _ : state) benchmark::DoNotOptimize(id = tier::id_of(id, tokens, tier::BlockKind::cells));
}
BENCHMARK(range_name)->RangeMultiplier(2)->Range(64, 1024)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace coppice::engine
