// The sampling fields of a request body: names, types, ranges and where they go, in one table. Internal to engine/.
#pragma once

#include "base/error.h"
#include "base/ids.h"
#include "base/json_fwd.h"

struct common_params_sampling;
struct llama_vocab;

namespace coppice::engine {

// What some fields are read against.
struct SamplingContext {
  const llama_vocab* vocab = nullptr;
  TokenPos n_cells = 0;  // the most tokens that penalties may look back
};

// Overwrites in `to` what `body` names; null means not named. Leaves grammar and reasoning budget alone. REQUIRES:
// `body` is an object. Errors: invalid_request naming the field.
Result<void> read_sampling_fields(const Json& body, const SamplingContext& context, common_params_sampling& to);

// The same fields as llama-server reports them in generation_settings.
Json show_sampling_fields(const common_params_sampling& from);

// Bias -inf for each end-of-generation token, which is how "ignore_eos" works.
void ban_end_tokens(const llama_vocab* vocab, common_params_sampling& to);

}  // namespace coppice::engine
