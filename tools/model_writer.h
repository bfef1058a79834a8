// Writes a model with random weights as a GGUF file. The same recipe gives the same bytes.
#pragma once

#include <cstdint>
#include <expected>
#include <filesystem>
#include <string>

#include "model_plan.h"

namespace coppice::tools {

struct ModelRecipe {
  const Architecture* architecture = nullptr;  // not null
  const ModelSize* size = nullptr;             // not null
  std::uint64_t seed = 1;
  std::filesystem::path tokenizer;  // a GGUF whose vocabulary and chat template are taken over
  std::string chat_template;        // in place of the tokenizer's, unless empty
};

// Replaces `file` in one step, so that nobody reads half a model. Errors: a sentence for a person.
std::expected<void, std::string> write_model(const ModelRecipe& recipe, const std::filesystem::path& file);

}  // namespace coppice::tools
