// What a random-weight test model consists of, before any weight is drawn: metadata keys, and tensors with their
// shapes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace coppice::tools {

// How the values of a tensor are drawn. Random weights hide errors in a cache unless the logits depend on every part of
// the prompt. So signals keep their size from layer to layer (matrices are scaled by their inputs), attention picks
// positions rather than averaging over all of them, and recurrent states forget slowly.
enum class Fill : std::uint8_t {
  unit,        // embeddings, attention sinks: normal, deviation 1
  matrix,      // normal; deviation falls with the root of the number of inputs
  query,       // a matrix times the architecture's query gain
  router,      // a matrix, wide apart: the expert that is just not chosen would have had next to no weight
  norm,        // about 1
  query_norm,  // about the query gain
  bias,        // normal, small
  decay,       // negative and small: what a recurrent state loses per token
};

struct TensorPlan {
  std::string name;
  std::vector<std::int64_t> shape;  // innermost dimension (the inputs of a matrix) first, as in GGUF
  Fill fill = Fill::matrix;
};

using KeyValue = std::variant<std::uint32_t, float, bool, std::vector<std::uint32_t>>;

struct KeyPlan {
  std::string key;  // without "<architecture>."
  KeyValue value;
};

struct ModelSize {
  std::string_view name;
  std::uint32_t n_embd = 0;  // a multiple of 128
  std::uint32_t n_layer = 0;
  std::uint32_t n_ctx = 8192;  // the longest context that the model says it was trained for
  bool quantized = false;      // matrices as Q8_0, as models are that people run; else 32-bit floats
};

struct ModelPlan {
  ModelSize size;
  std::uint32_t n_vocab = 0;
  std::vector<KeyPlan> keys;
  std::vector<TensorPlan> tensors;

  void key(std::string_view name, KeyValue value) { keys.push_back({std::string(name), std::move(value)}); }
  void tensor(std::string_view name, std::vector<std::int64_t> shape, Fill fill) {
    tensors.push_back({std::string(name), std::move(shape), fill});
  }
};

struct Architecture {
  std::string_view name;     // as in general.architecture
  void (*plan)(ModelPlan&);  // REQUIRES: size and n_vocab are set; adds keys and tensors
  float query_gain = 1;      // how sharply attention picks positions
};

const std::vector<Architecture>& architectures();
const std::vector<ModelSize>& model_sizes();

// Null if there is none of that name.
const Architecture* find_architecture(std::string_view name);
const ModelSize* find_model_size(std::string_view name);

}  // namespace coppice::tools
