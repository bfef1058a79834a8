// The request fields that say how much to generate and what to report of it. Sampling fields are the SamplerFactory's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/services.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/json_fwd.h"
#include "engine/sampler.h"

namespace coppice::api {

enum class ApiKind : std::uint8_t { native, completions, chat };

struct GenerationFields {
  std::int32_t n_predict = -1;  // -1: no limit; 0: only evaluate the prompt
  std::int32_t n = 1;           // answers per prompt
  std::vector<std::string> stop;
  bool stream = false;
  bool include_usage = false;  // stream_options.include_usage
  bool return_tokens = false;
  bool return_progress = false;
  bool return_probs = false;  // logprobs were asked for, maybe without alternatives
  std::int32_t n_alternatives = 0;
  bool post_sampling_probs = false;
  Duration predict_limit{0};
  std::optional<std::int64_t> seed;  // the client's; empty: random
  std::int32_t ping_interval_s = 0;  // <= 0: none
  std::optional<bool> idle_prefill;  // whether the next prompt's beginning is prepared; empty: as the server is set
  std::vector<std::string> response_fields;  // native only; empty: all

  // What the engine must report for each token to answer this.
  engine::ProbsOptions probs_options() const;
};

// Errors: invalid_request naming the field. `timings_per_token` is accepted; timings come with the last message only.
Result<GenerationFields> read_generation(const Json& body, ApiKind api, const Services& services);

}  // namespace coppice::api
