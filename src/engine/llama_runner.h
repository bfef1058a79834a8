// Runner on a real model through llama.h. Owns nothing but bookkeeping; the model must outlive it.
#pragma once

#include <memory>

#include "engine/llama_model.h"
#include "engine/runner.h"
#include "engine/tokenizer.h"

namespace coppice::engine {

std::unique_ptr<Runner> make_llama_runner(LlamaModel& model);
std::unique_ptr<Tokenizer> make_llama_tokenizer(const LlamaModel& model);
std::unique_ptr<SamplerFactory> make_llama_sampler_factory(const LlamaModel& model);

}  // namespace coppice::engine
