// Every architecture of make_models: written, loaded as the server loads it, evaluated; the same bytes each time.
#include <gtest/gtest.h>
#include <llama.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "engine/llama_model.h"
#include "engine/llama_runner.h"
#include "model_writer.h"

namespace coppice::tools {
namespace {

class MakeModels : public ::testing::TestWithParam<Architecture> {
 protected:
  void SetUp() override {
    const std::string test = "coppice-make-models-" + std::string(GetParam().name) + "-XXXXXX";
    std::string pattern = (std::filesystem::temp_directory_path() / test).string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path write(const std::string& name, std::uint64_t seed = 1, std::string chat_template = {}) {
    const ModelRecipe recipe{&GetParam(), find_model_size("tiny"), seed, COPPICE_DEMO_MODEL, std::move(chat_template)};
    const auto written = write_model(recipe, folder_ / name);
    EXPECT_TRUE(written) << written.error();
    return folder_ / name;
  }

  static std::string bytes(const std::filesystem::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  std::filesystem::path folder_;
};

TEST_P(MakeModels, GivesTheSameBytesForTheSameSeed) {
  const std::string first = bytes(write("a.gguf"));
  EXPECT_GT(first.size(), 1000000U);
  EXPECT_LT(first.size(), 8000000U);
  EXPECT_EQ(first, bytes(write("b.gguf")));
  EXPECT_NE(first, bytes(write("c.gguf", 2)));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 3) << "nothing else is left behind";
}

TEST_P(MakeModels, LoadsAndGivesFiniteLogits) {
  auto config = engine::LlamaConfig::parse({"-m", write("a.gguf").string(), "-c", "1024", "-t", "2", "--no-warmup"});
  ASSERT_TRUE(config) << config.error().message;
  auto model = engine::LlamaModel::load(std::move(*config), {.backend_dir = COPPICE_BACKEND_DIR, .n_slots = 4});
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ((*model)->summary().architecture, GetParam().name);
  EXPECT_GE((*model)->summary().n_ctx_train, 8192);

  const auto tokenizer = engine::make_llama_tokenizer(**model);
  const Tokens prompt = tokenizer->tokenize("<|im_start|>user\nWho are you?<|im_end|>\n", true, true);
  EXPECT_EQ(tokenizer->text(prompt, true), "<|im_start|>user\nWho are you?<|im_end|>\n");
  std::vector<engine::BatchItem> batch;
  for (const Token t : prompt) batch.push_back({t, static_cast<TokenPos>(batch.size()), SeqId(3), true});
  ASSERT_EQ(engine::make_llama_runner(**model)->decode(batch), engine::DecodeStatus::ok);
  const auto last = static_cast<std::int32_t>(batch.size()) - 1;
  const float* logits = llama_get_logits_ith((*model)->context(), last);
  double sum = 0, squares = 0;
  for (std::int32_t t = 0; t < tokenizer->n_vocab(); ++t) {
    ASSERT_TRUE(std::isfinite(logits[t]));
    sum += logits[t], squares += logits[t] * logits[t];
  }
  const double n = tokenizer->n_vocab(), deviation = std::sqrt(squares / n - sum / n * sum / n);
  EXPECT_GT(deviation, 0.5) << "logits that tell tokens apart";
  EXPECT_LT(deviation, 5) << "and leave sampling a choice";
}

TEST_P(MakeModels, TakesATemplate) {
  const std::string text = "{{- messages[0].content -}}";
  auto config = engine::LlamaConfig::parse({"-m", write("a.gguf", 1, text).string(), "-c", "256", "--no-warmup"});
  ASSERT_TRUE(config) << config.error().message;
  auto model = engine::LlamaModel::load(std::move(*config), {.backend_dir = COPPICE_BACKEND_DIR, .n_slots = 1});
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(llama_model_chat_template((*model)->model(), nullptr), text);
}

INSTANTIATE_TEST_SUITE_P(All, MakeModels, ::testing::ValuesIn(architectures()), [](const auto& param_info) {
  std::string name(param_info.param.name);
  std::erase(name, '-');
  return name;
});

TEST(MakeModelsErrors, SayWhatIsWrong) {
  const ModelRecipe recipe{find_architecture("qwen3"), find_model_size("tiny"), 1, "/no/such/file.gguf", {}};
  const auto written = write_model(recipe, "/tmp/never-written.gguf");
  ASSERT_FALSE(written);
  EXPECT_NE(written.error().find("/no/such/file.gguf"), std::string::npos);
  EXPECT_EQ(find_architecture("nothing"), nullptr);
  EXPECT_EQ(find_model_size("huge"), nullptr);
}

}  // namespace
}  // namespace coppice::tools
