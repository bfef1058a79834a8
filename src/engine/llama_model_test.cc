#include "engine/llama_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "engine/llama_log.h"
#include "engine/llama_memory.h"
#include "engine/llama_runner.h"

namespace coppice::engine {
namespace {

using testing::HasSubstr;

Result<std::unique_ptr<LlamaModel>> load(std::vector<std::string> args, LoadOptions options = {}) {
  auto config = LlamaConfig::parse(args);
  if (!config) return std::unexpected(config.error());
  options.backend_dir = COPPICE_BACKEND_DIR;
  return LlamaModel::load(std::move(*config), options);
}

class TempFile {
 public:
  explicit TempFile(const std::string& content) {
    std::string name = (std::filesystem::temp_directory_path() / "coppice-test-XXXXXX").string();
    const int fd = ::mkstemp(name.data());
    EXPECT_GE(fd, 0);
    ::close(fd);
    path_ = name;
    std::ofstream(path_, std::ios::binary) << content;
  }
  ~TempFile() { std::filesystem::remove(path_); }
  TempFile(const TempFile&) = delete;
  TempFile& operator=(const TempFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST(LlamaModel, LoadsTheBuiltInModelAndSaysWhatItIs) {
  auto model = load({"-m", COPPICE_DEMO_MODEL, "-c", "1000"}, {.n_slots = 3});
  ASSERT_TRUE(model.has_value()) << model.error().message;
  const LlamaModel::Summary& summary = (*model)->summary();
  EXPECT_FALSE(summary.architecture.empty());
  EXPECT_FALSE(summary.name.empty());
  EXPECT_GT(summary.n_params, 1'000'000U);
  EXPECT_GT(summary.file_bytes, 1'000'000U);
  EXPECT_EQ(summary.n_ctx, 1024) << "llama.cpp rounds up to 256";
  EXPECT_EQ(summary.kv_bytes, 1024U * 2048U) << "2 KiB per token";
  EXPECT_FALSE(summary.devices.empty());
  EXPECT_NE((*model)->model(), nullptr);
  EXPECT_NE((*model)->context(), nullptr);
  EXPECT_NE((*model)->vocab(), nullptr);
}

TEST(LlamaModel, WithoutCTheContextIsTheTrainedOne) {
  auto model = load({"-m", COPPICE_DEMO_MODEL});
  ASSERT_TRUE(model.has_value()) << model.error().message;
  EXPECT_EQ((*model)->summary().n_ctx, (*model)->summary().n_ctx_train);
}

TEST(LlamaModel, ProgressRisesToOne) {
  float last = -1;
  LoadOptions options;
  options.on_progress = [&](float value) {
    EXPECT_GE(value, last);
    last = value;
    return true;
  };
  ASSERT_TRUE(load({"-m", COPPICE_DEMO_MODEL, "-c", "256"}, options).has_value());
  EXPECT_FLOAT_EQ(last, 1.0F);
}

TEST(LlamaModel, ProgressCanAbort) {
  LoadOptions options;
  options.on_progress = [](float) { return false; };
  auto model = load({"-m", COPPICE_DEMO_MODEL, "-c", "256"}, options);
  ASSERT_FALSE(model.has_value());
  EXPECT_EQ(model.error().kind, ErrorKind::cancelled);
}

TEST(LlamaModel, ProgressCanAbortWhileTensorsLoad) {
  LoadOptions options;
  options.on_progress = [](float value) { return value < 0.5F; };
  auto model = load({"-m", COPPICE_DEMO_MODEL, "-c", "256"}, options);
  ASSERT_FALSE(model.has_value());
  EXPECT_EQ(model.error().kind, ErrorKind::cancelled);
}

TEST(LlamaModel, MissingAndForeignFilesAreTheUsersMistake) {
  auto missing = load({"-m", "/nonexistent/model.gguf"});
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().kind, ErrorKind::invalid_request);
  EXPECT_THAT(missing.error().message, HasSubstr("/nonexistent/model.gguf"));

  TempFile text("this is not a model");
  auto foreign = load({"-m", text.path()});
  ASSERT_FALSE(foreign.has_value());
  EXPECT_EQ(foreign.error().kind, ErrorKind::invalid_request);
  EXPECT_THAT(foreign.error().message, HasSubstr("GGUF"));

  auto none = load({});
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().kind, ErrorKind::invalid_request);
}

TEST(LlamaModel, ABrokenFileComesWithLlamasReason) {
  set_log_sink([](LogLevel, std::string_view) {});
  TempFile cut(std::string("GGUF\3\0\0\0", 8));
  auto model = load({"-m", cut.path()});
  set_log_sink({});
  ASSERT_FALSE(model.has_value());
  EXPECT_EQ(model.error().kind, ErrorKind::internal);
  EXPECT_THAT(model.error().message, testing::ContainsRegex("cannot load .*: .+"));
}

TEST(LlamaModel, SlotsMustFitLlamasSequences) {
  for (std::int32_t n_slots : {0, -1, 257}) {
    auto model = load({"-m", COPPICE_DEMO_MODEL}, {.n_slots = n_slots});
    ASSERT_FALSE(model.has_value());
    EXPECT_EQ(model.error().kind, ErrorKind::invalid_request);
  }
}

TEST(LlamaModel, SequencesAreAllThereIsWhereTheyCostNothing) {
  auto model = load({"-m", COPPICE_DEMO_MODEL, "-c", "256"}, {.n_slots = 2});
  ASSERT_TRUE(model.has_value());
  EXPECT_EQ(make_llama_runner(**model)->info().n_seqs, 255) << "one is for saving and restoring";
  EXPECT_EQ((*model)->summary().kv_bytes, 256U * 2048U);
  auto few = load({"-m", COPPICE_DEMO_MODEL, "-c", "256"}, {.n_slots = 2, .n_sequences = 5});
  ASSERT_TRUE(few.has_value());
  EXPECT_EQ(make_llama_runner(**few)->info().n_seqs, 5);
  for (std::int32_t n_sequences : {1, 257, -3}) {
    auto bad = load({"-m", COPPICE_DEMO_MODEL}, {.n_slots = 2, .n_sequences = n_sequences});
    ASSERT_FALSE(bad.has_value());
    EXPECT_EQ(bad.error().param, "--sequences");
  }
}

TEST(LlamaMemory, SequencesThatCostSomethingGetAQuarterMore) {
  EXPECT_EQ(affordable_sequences(4, 1000, 1000), 4 + 4 + 1);  // costs nothing, and no more was asked for
  EXPECT_EQ(affordable_sequences(1, 1000, 1000), 1 + 1 + 1);
  EXPECT_EQ(affordable_sequences(4, 4000, 4400), 4 + 10 + 1);  // 100 each, and 1000 to spend
  EXPECT_EQ(affordable_sequences(4, 4000, 8000), 4 + 4 + 1);   // never less than a parked one for each slot
  EXPECT_EQ(affordable_sequences(4, 400000, 400001), 256);
  EXPECT_EQ(affordable_sequences(200, 1000, 2000), 256);
}

TEST(LlamaModel, AMissingAdapterIsAnError) {
  set_log_sink([](LogLevel, std::string_view) {});
  EXPECT_FALSE(load({"-m", COPPICE_DEMO_MODEL, "-c", "256", "--lora", "/nonexistent/lora.gguf"}).has_value());
  EXPECT_FALSE(load({"-m", COPPICE_DEMO_MODEL, "-c", "256", "--control-vector", "/nonexistent/cv.gguf"}).has_value());
  set_log_sink({});
}

TEST(LlamaModel, ABrokenDefaultGrammarIsRefused) {
  set_log_sink([](LogLevel, std::string_view) {});
  auto model = load({"-m", COPPICE_DEMO_MODEL, "-c", "256", "--grammar", "root ::= ["});
  set_log_sink({});
  ASSERT_FALSE(model.has_value());
  EXPECT_THAT(model.error().message, HasSubstr("grammar"));
}

TEST(CpuCells, TakesTheTrainedLengthWithinTheCap) {
  MemoryNeed need{.model_bytes = 1 << 20, .kv_bytes = 8192 * 10, .host_bytes_total = 1 << 30, .n_ctx_train = 8192};
  EXPECT_EQ(cpu_cells(need, 131072), 8192);
  EXPECT_EQ(cpu_cells(need, 4096), 4096);
}

TEST(CpuCells, TakesAtMostHalfOfWhatTheModelLeaves) {
  constexpr std::uint64_t GiB = 1ULL << 30;
  // 1 MiB per cell, 16 GiB of RAM, 8 of them taken: 4 GiB for cells.
  MemoryNeed need{.model_bytes = 7 * GiB,
                  .kv_bytes = 100'000ULL << 20,
                  .compute_bytes = GiB,
                  .host_bytes_total = 16 * GiB,
                  .n_ctx_train = 100'000};
  EXPECT_EQ(cpu_cells(need, 131072), 4096);
  need.host_bytes_total = 32 * GiB;
  EXPECT_EQ(cpu_cells(need, 131072), 12288);
  need.model_bytes = 64 * GiB;
  EXPECT_EQ(cpu_cells(need, 131072), 4096) << "a floor below which nothing works";
}

}  // namespace
}  // namespace coppice::engine
