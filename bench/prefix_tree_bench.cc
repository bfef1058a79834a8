// Finding and recording prefixes: long prompts, as many sequences as llama.cpp has.
//
// The floor of a lookup is reading the prompt and what is held once each: Floor/compare. Of an insert: copying it once.
#include <benchmark/benchmark.h>

#include "kv/prefix.h"
#include "kv/prefix_tree.h"

namespace coppice::kv {
namespace {

constexpr std::int32_t kSeqs = PrefixTree::kSeqsMax;
const NamespaceId ns{};

Tokens run_of(int seed, std::size_t count) {
  Tokens tokens(count);
  for (std::size_t i = 0; i < count; ++i)
    tokens[i] = static_cast<Token>((i * 2654435761U + static_cast<unsigned>(seed) * 40503U) % 150000U);
  return tokens;
}

// 256 agents over one base, each with a tail of its own that branches again every few hundred tokens.
struct Forest {
  explicit Forest(std::size_t length) : tree(kSeqs), prompt(run_of(0, length)) {
    for (int i = 0; i + 1 < kSeqs; ++i) {
      const std::size_t shared = length * static_cast<std::size_t>(i + 1) / kSeqs;
      Tokens agent(prompt.begin(), prompt.begin() + static_cast<std::ptrdiff_t>(shared));
      const Tokens own = run_of(i + 1, 400);
      agent.insert(agent.end(), own.begin(), own.end());
      tree.assign(SeqId{i}, ns, agent);
    }
  }
  PrefixTree tree;
  Tokens prompt;
};

void lookup(benchmark::State& state) {
  const Forest forest(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(forest.tree.common(ns, forest.prompt));
  state.counters["nodes"] = static_cast<double>(forest.tree.n_nodes());
}
BENCHMARK(lookup)->Arg(1000)->Arg(10000)->Arg(100000)->Unit(benchmark::kMicrosecond);

void lookup_and_insert(benchmark::State& state) {
  Forest forest(static_cast<std::size_t>(state.range(0)));
  const SeqId seq{kSeqs - 1};
  for (auto _ : state) {
    benchmark::DoNotOptimize(forest.tree.common(ns, forest.prompt));
    forest.tree.assign(seq, ns, forest.prompt);
    state.PauseTiming();
    forest.tree.truncate(seq, 0);
    state.ResumeTiming();
  }
}
BENCHMARK(lookup_and_insert)->Arg(1000)->Arg(10000)->Arg(100000)->Unit(benchmark::kMicrosecond);

void append(benchmark::State& state) {
  Forest forest(10000);
  Token token = 0;
  for (auto _ : state) {
    forest.tree.append(SeqId{7}, token++);
    if (forest.tree.length(SeqId{7}) > 50000) forest.tree.truncate(SeqId{7}, 500);
  }
}
BENCHMARK(append)->Unit(benchmark::kNanosecond);

void floor_compare(benchmark::State& state) {
  const Tokens a = run_of(0, static_cast<std::size_t>(state.range(0))), b = a;
  for (auto _ : state) benchmark::DoNotOptimize(common_prefix(a, b));
}
BENCHMARK(floor_compare)->Name("floor/compare")->Arg(100000)->Unit(benchmark::kMicrosecond);

void floor_copy(benchmark::State& state) {
  const Tokens a = run_of(0, static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) {
    Tokens copy = a;
    benchmark::DoNotOptimize(copy.data());
  }
}
BENCHMARK(floor_copy)->Name("floor/copy")->Arg(100000)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace coppice::kv
