#include "model_writer.h"

#include <cmath>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "ggml.h"
#include "gguf.h"

namespace coppice::tools {
namespace {

using Gguf = std::unique_ptr<gguf_context, decltype(&gguf_free)>;
using Ggml = std::unique_ptr<ggml_context, decltype(&ggml_free)>;

// A stream of numbers that depends on the seed and a name alone, so that a tensor's values do not change when others
// come or go. Integers up to the last step, so that every machine draws the same (SplitMix64: Steele, Lea and Flood
// 2014).
class Random {
 public:
  Random(std::uint64_t seed, std::string_view name) : state_(seed) {
    for (const unsigned char c : name) state_ = (state_ ^ c) * 0x100000001b3ULL;
  }

  // About normal, mean 0, deviation 1: the sum of four 16-bit numbers.
  float normal() {
    constexpr double mean = 2 * 65535.0, deviation = 37837.2;  // 65536 * sqrt(4 / 12)
    const std::uint64_t bits = next();
    std::uint64_t sum = 0;
    for (int lane = 0; lane < 4; ++lane) sum += (bits >> (16 * lane)) & 0xffff;
    return static_cast<float>((static_cast<double>(sum) - mean) / deviation);
  }

  float uniform(float low, float high) { return low + (high - low) * static_cast<float>(next() >> 40) * 0x1p-24F; }

 private:
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }

  std::uint64_t state_;
};

std::vector<float> draw(const TensorPlan& tensor, float query_gain, std::uint64_t seed) {
  const auto n = std::accumulate(tensor.shape.begin(), tensor.shape.end(), std::int64_t{1}, std::multiplies{});
  const float matrix = 1.5F / std::sqrt(static_cast<float>(tensor.shape[0]));
  Random random(seed, tensor.name);
  const auto next = [&]() -> float {
    switch (tensor.fill) {
      case Fill::unit: return random.normal();
      case Fill::matrix: return matrix * random.normal();
      case Fill::query: return query_gain * matrix * random.normal();
      case Fill::router: return 4 * matrix * random.normal();
      case Fill::norm: return 1 + 0.1F * random.normal();
      case Fill::query_norm: return query_gain * (1 + 0.1F * random.normal());
      case Fill::bias: return 0.1F * random.normal();
      case Fill::decay: return random.uniform(-0.05F, -0.005F);
    }
    return 0;
  };
  std::vector<float> values(static_cast<std::size_t>(n));
  for (float& v : values) v = next();
  return values;
}

// Vectors, and matrices whose rows are no whole blocks, stay as they are.
ggml_type type_of(const TensorPlan& tensor, const ModelSize& size) {
  const bool fits = tensor.shape.size() == 2 && tensor.shape[0] % ggml_blck_size(GGML_TYPE_Q8_0) == 0;
  return size.quantized && fits ? GGML_TYPE_Q8_0 : GGML_TYPE_F32;
}

std::vector<std::byte> encode(const std::vector<float>& values, ggml_type type, std::int64_t row) {
  const auto rows = static_cast<std::int64_t>(values.size()) / row;
  std::vector<std::byte> bytes(static_cast<std::size_t>(rows) * ggml_row_size(type, row));
  if (type == GGML_TYPE_F32) {
    std::memcpy(bytes.data(), values.data(), bytes.size());
  } else {
    ggml_quantize_chunk(type, values.data(), bytes.data(), 0, rows, row, nullptr);
  }
  return bytes;
}

// Vocabulary and chat template of the tokenizer file, and nothing else.
std::expected<Gguf, std::string> read_tokenizer(const std::filesystem::path& file) {
  const Gguf source(gguf_init_from_file(file.c_str(), {.no_alloc = true, .ctx = nullptr}), gguf_free);
  if (!source) return std::unexpected("cannot read the tokenizer from " + file.string());
  std::vector<std::string> foreign;
  for (std::int64_t i = 0; i < gguf_get_n_kv(source.get()); ++i) {
    const std::string key = gguf_get_key(source.get(), i);
    if (!key.starts_with("tokenizer.")) foreign.push_back(key);
  }
  for (const std::string& key : foreign) gguf_remove_key(source.get(), key.c_str());
  Gguf keys(gguf_init_empty(), gguf_free);  // without the source's tensors
  gguf_set_kv(keys.get(), source.get());
  return keys;
}

// 0 if there is no vocabulary.
std::uint32_t vocabulary_size(const gguf_context* gguf) {
  const std::int64_t tokens = gguf_find_key(gguf, "tokenizer.ggml.tokens");
  return tokens < 0 ? 0 : static_cast<std::uint32_t>(gguf_get_arr_n(gguf, tokens));
}

void set_key(gguf_context* gguf, const std::string& key, const KeyValue& value) {
  const char* name = key.c_str();
  if (const auto* v = std::get_if<std::uint32_t>(&value)) gguf_set_val_u32(gguf, name, *v);
  if (const auto* v = std::get_if<float>(&value)) gguf_set_val_f32(gguf, name, *v);
  if (const auto* v = std::get_if<bool>(&value)) gguf_set_val_bool(gguf, name, *v);
  if (const auto* v = std::get_if<std::vector<std::uint32_t>>(&value)) {
    gguf_set_arr_data(gguf, name, GGUF_TYPE_UINT32, v->data(), v->size());
  }
}

void set_keys(gguf_context* gguf, const ModelRecipe& recipe, const ModelPlan& plan) {
  const std::string arch(recipe.architecture->name);
  gguf_set_val_str(gguf, "general.architecture", arch.c_str());
  gguf_set_val_str(gguf, "general.name", ("random " + arch + " " + std::string(recipe.size->name)).c_str());
  for (const KeyPlan& k : plan.keys) set_key(gguf, arch + "." + k.key, k.value);
  if (!recipe.chat_template.empty()) gguf_set_val_str(gguf, "tokenizer.chat_template", recipe.chat_template.c_str());
}

std::expected<void, std::string> replace_file(const gguf_context* gguf, const std::filesystem::path& file) {
  const std::filesystem::path part = file.string() + ".part";
  if (!gguf_write_to_file(gguf, part.c_str(), false)) return std::unexpected("cannot write " + part.string());
  std::error_code error;
  std::filesystem::rename(part, file, error);
  if (error) return std::unexpected("cannot write " + file.string() + ": " + error.message());
  return {};
}

}  // namespace

std::expected<void, std::string> write_model(const ModelRecipe& recipe, const std::filesystem::path& file) {
  const std::expected<Gguf, std::string> read = read_tokenizer(recipe.tokenizer);
  if (!read) return std::unexpected(read.error());
  gguf_context* gguf = read->get();
  ModelPlan plan{.size = *recipe.size, .n_vocab = vocabulary_size(gguf), .keys = {}, .tensors = {}};
  if (plan.n_vocab == 0) return std::unexpected(recipe.tokenizer.string() + " holds no vocabulary");
  recipe.architecture->plan(plan);
  set_keys(gguf, recipe, plan);

  // Tensors without memory: the file takes name, type and shape from them and the values from `weights`.
  const Ggml shapes(ggml_init({plan.tensors.size() * ggml_tensor_overhead(), nullptr, true}), ggml_free);
  std::vector<std::vector<std::byte>> weights;
  for (const TensorPlan& t : plan.tensors) {
    const ggml_type type = type_of(t, *recipe.size);
    ggml_tensor* shape = ggml_new_tensor(shapes.get(), type, static_cast<int>(t.shape.size()), t.shape.data());
    ggml_set_name(shape, t.name.c_str());
    weights.push_back(encode(draw(t, recipe.architecture->query_gain, recipe.seed), type, t.shape[0]));
    gguf_add_tensor(gguf, shape);
    gguf_set_tensor_data(gguf, t.name.c_str(), weights.back().data());
  }
  return replace_file(gguf, file);
}

}  // namespace coppice::tools
