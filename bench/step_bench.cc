// What the engine itself costs per decode step, on a model that takes no time: batch, cells, tree, text, events, the
// snapshot for others to look at. And what admitting a request costs while many are held.
#include <benchmark/benchmark.h>
#include <spdlog/spdlog.h>

#include "engine/fake_runner.h"
#include "sched/scheduler.h"

namespace coppice::sched {
namespace {

// Answers at once, always with the same token.
class NoRunner final : public engine::Runner {
 public:
  const engine::RunnerInfo& info() const override { return info_; }
  void share(SeqId, SeqId, TokenPos, TokenPos) override {}
  bool remove(SeqId, TokenPos, TokenPos) override { return true; }
  void clear(SeqId) override {}
  bool can_resume(SeqId, TokenPos length, TokenPos at) const override { return at <= length; }
  void share_cells(SeqId, SeqId, TokenPos) override {}
  std::vector<std::byte> save(SeqId, TokenPos, TokenPos, engine::SaveKind) override { return {}; }
  bool restore(SeqId, TokenPos, TokenPos, const Saved&) override { return false; }
  engine::DecodeStatus decode(std::span<const engine::BatchItem>) override { return engine::DecodeStatus::ok; }
  engine::Sampled sample(engine::Sampler&, std::int32_t, const engine::ProbsOptions&) override { return {7, 0, {}}; }

 private:
  engine::RunnerInfo info_{.n_cells = 1 << 24, .n_seqs = 256, .n_batch = 2048, .n_ubatch = 512, .bytes_per_cell = 1};
};

class NoSampler final : public engine::Sampler {
 public:
  void accept_prompt(std::span<const Token>) override {}
};

class NoSink final : public EventSink {
 public:
  void on_delta(TextDelta delta) override { benchmark::DoNotOptimize(delta); }
  void on_finished(Finished) override {}
  void on_failed(Error) override {}
};

struct Server {
  explicit Server(std::int32_t n_slots) : scheduler({.n_slots = n_slots}, runner, tokenizer, clock, metrics) {
    spdlog::set_level(spdlog::level::off);
  }
  void submit(Tokens prompt, int n_predict) {
    Request request;
    request.id = RequestId{++last_id};
    request.prompt = std::make_shared<const Tokens>(std::move(prompt));
    request.sampler = std::make_unique<NoSampler>();
    request.n_predict = n_predict;
    request.sink = std::make_shared<NoSink>();
    scheduler.submit(std::move(request));
  }
  NoRunner runner;
  engine::FakeTokenizer tokenizer{1000};
  SteadyClock clock;
  obs::Metrics metrics;
  Scheduler scheduler;
  std::uint64_t last_id = 0;
};

Tokens prompt_of(int seed, std::size_t count) {
  Tokens tokens(count, 5);
  for (std::size_t i = count / 2; i < count; ++i)
    tokens[i] = static_cast<Token>(10 + (i + static_cast<unsigned>(seed)) % 900);
  return tokens;
}

// 64 agents over one base decode; 2% of a step of 10 ms are 200 us.
void decode_step(benchmark::State& state) {
  const auto n = static_cast<std::int32_t>(state.range(0));
  Server server(n);
  for (int i = 0; i < n; ++i) server.submit(prompt_of(i, 2000), 1 << 22);
  for (int i = 0; i < 2000; ++i) server.scheduler.step();
  for (auto _ : state) {
    server.scheduler.step();
    benchmark::DoNotOptimize(server.scheduler.snapshot());
  }
}
BENCHMARK(decode_step)->Arg(1)->Arg(16)->Arg(64)->Unit(benchmark::kMicrosecond);

// One turn of a conversation of 100,000 tokens beside 200 others that share half of it: lookup, plan, admission,
// release.
void warm_turn(benchmark::State& state) {
  constexpr std::size_t kLength = 100000;
  Server server(4);
  for (int i = 0; i < 200; ++i) {
    server.submit(prompt_of(i, 2000), 0);
    while (server.scheduler.step()) {
    }
  }
  const Tokens prompt = prompt_of(1, kLength);
  server.submit(prompt, 0);
  while (server.scheduler.step()) {
  }
  for (auto _ : state) {
    server.submit(prompt, 0);
    while (server.scheduler.step()) {
    }
  }
}
BENCHMARK(warm_turn)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace coppice::sched
