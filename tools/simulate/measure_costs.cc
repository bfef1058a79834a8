// measure_costs: what a model's steps, saves and restores cost on this machine, for the simulator. One thread, and
// times are of its CPU, so that other programs disturb them little. Cells are filled by restoring one saved block over
// and over, which is hundreds of times faster than computing them.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <ctime>
#include <functional>
#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "engine/llama_runner.h"
#include "simulate/cost_point.h"

namespace coppice::simulate {
namespace {

using engine::Runner;

constexpr SeqId kBlock{0}, kFresh{1};
constexpr std::int32_t kFirstFiller = 2, kFillers = 32, kFirstStream = kFirstFiller + kFillers, kStreams = 8;
constexpr TokenPos kBlockTokens = 2048;
constexpr int kRepeats = 5;

double now_us() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

class Measure {
 public:
  Measure(Runner& runner, std::int32_t n_vocab) : runner_(runner), n_vocab_(n_vocab) {}

  void run(int cells_max) {
    for (TokenPos at = 0; at < kBlockTokens; at += runner_.info().n_ubatch) {
      decode({batch(kBlock, at, runner_.info().n_ubatch)});
    }
    used_ = kBlockTokens;
    for (std::int32_t i = 0; i < kStreams; ++i) decode(batch(SeqId{kFirstStream + i}, 0, 16)), used_ += 16;
    saved_ = runner_.save(kBlock, 0, kBlockTokens, engine::SaveKind::cells);
    copying();
    for (std::int32_t i = 0; i <= kFillers; ++i) {
      if (i == 0 || i == 1 || i == 3 || i % 4 == 2) steps();
      if (i == kFillers || used_ + kBlockTokens > cells_max) break;
      if (!runner_.restore(SeqId{kFirstFiller + i}, 0, kBlockTokens, {0, kBlockTokens, saved_}))
        throw std::runtime_error("restore() failed");
      used_ += kBlockTokens;
    }
  }

 private:
  std::vector<engine::BatchItem> batch(SeqId seq, TokenPos begin, TokenPos n) const {
    std::vector<engine::BatchItem> items;
    for (TokenPos i = 0; i < n; ++i) items.push_back({(begin + i) * 7919 % (n_vocab_ / 2), begin + i, seq, i + 1 == n});
    return items;
  }

  void decode(const std::vector<engine::BatchItem>& items) {
    if (runner_.decode(items) != engine::DecodeStatus::ok) throw std::runtime_error("decode() failed");
  }

  // The least of some times that `work` took, each after `before`: what disturbs it only makes it slower.
  static double time_us(const std::function<void()>& before, const std::function<void()>& work) {
    double least = std::numeric_limits<double>::infinity();
    for (int i = 0; i < kRepeats; ++i) {
      before();
      const double began = now_us();
      work();
      least = std::min(least, now_us() - began);
    }
    return least;
  }

  static void print(const CostPoint& point) { std::cout << to_line(point) << std::endl; }

  // Prompts of one sequence, and one token of each of several answers.
  void steps() {
    for (const TokenPos n : {16, 32, 64, 128, 256, 512}) {
      const auto items = batch(kFresh, 0, n);
      const double us = time_us([&] { runner_.clear(kFresh); }, [&] { decode(items); });
      print({Work::step, n, used_ + n, us});
    }
    runner_.clear(kFresh);
    for (const std::int32_t n : {1, 2, 4, 8}) {
      std::vector<engine::BatchItem> items;
      for (std::int32_t i = 0; i < n; ++i) items.push_back({11, 16, SeqId{kFirstStream + i}, true});
      const auto cut = [&] {
        for (std::int32_t i = 0; i < n; ++i) runner_.remove(SeqId{kFirstStream + i}, 16, -1);
      };
      print({Work::step, n, used_ + n, time_us(cut, [&] { decode(items); })});
      cut();
    }
  }

  void copying() {
    runner_.save(kBlock, 0, kBlockTokens, engine::SaveKind::cells);  // its buffers are there from now on
    for (const TokenPos n : {16, 32, 64, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048}) {
      std::vector<std::byte> bytes;
      print(
          {Work::save, n, used_, time_us([] {}, [&] { bytes = runner_.save(kBlock, 0, n, engine::SaveKind::cells); })});
      print({Work::restore, n, used_ + n,
             time_us([&] { runner_.clear(kFresh); },
                     [&] {
                       if (!runner_.restore(kFresh, 0, n, {0, n, bytes})) throw std::runtime_error("restore() failed");
                     })});
    }
    runner_.clear(kFresh);
  }

  Runner& runner_;
  const std::int32_t n_vocab_;
  TokenPos used_ = 0;
  std::vector<std::byte> saved_;
};

int run(int argc, char** argv) {
  std::string model, name, machine, commit;
  int cells = 0;
  CLI::App app("Measures what steps, saves and restores of a model cost; writes JSON lines for coppice-simulate");
  app.add_option("--model", model, "GGUF file")->required();
  app.add_option("--name", name, "What the model is called in the results");
  app.add_option("--cells", cells, "Cells to fill, at most")->default_val(57344);
  app.add_option("--machine", machine, "What the machine is called in the results");
  app.add_option("--commit", commit, "Which source was measured");
  CLI11_PARSE(app, argc, argv);
  auto config = engine::LlamaConfig::parse(
      {"-m", model, "-c", std::to_string(cells + 2048), "-t", "1", "-fa", "on", "--no-warmup"});
  if (!config) throw std::runtime_error(config.error().message);
  auto loaded = engine::LlamaModel::load(
      std::move(*config), {.backend_dir = COPPICE_BACKEND_DIR, .n_slots = 8, .n_sequences = kFirstStream + kStreams});
  if (!loaded) throw std::runtime_error(loaded.error().message);
  const auto runner = engine::make_llama_runner(**loaded);
  std::cout << nlohmann::ordered_json{{"model", name},
                                      {"machine", machine},
                                      {"commit", commit},
                                      {"threads", 1},
                                      {"bytes_per_token", runner->info().bytes_per_cell}}
                   .dump()
            << std::endl;
  Measure(*runner, (*loaded)->summary().n_vocab).run(cells);
  return 0;
}

}  // namespace
}  // namespace coppice::simulate

int main(int argc, char** argv) try { return coppice::simulate::run(argc, argv); } catch (const std::exception& e) {
  std::cerr << "measure_costs: " << e.what() << '\n';
  return 1;
}
