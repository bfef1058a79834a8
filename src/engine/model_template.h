// The chat template in a model's file, without loading the model.
#pragma once

#include <string>

#include "base/error.h"

namespace coppice::engine {

struct ModelTemplate {
  std::string source;                // empty: the file has none
  std::string bos_token, eos_token;  // as text; empty where the vocabulary has none
};

// Reads the head of a GGUF file alone. Errors: invalid_request if it is missing or no GGUF.
Result<ModelTemplate> read_model_template(const std::string& path);

}  // namespace coppice::engine
