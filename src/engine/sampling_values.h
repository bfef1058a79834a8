// Readers and writers of the sampling fields that are more than a number in a range. Internal to engine/.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "base/json_fwd.h"
#include "engine/sampling_fields.h"

namespace coppice::engine {

// Finite; at most 1e300 in size.
Result<double> read_number(const Json& value, const std::string& name);
// Whole; one beyond 64 bits is cut to the nearest that fits.
Result<std::int64_t> read_integer(const Json& value, const std::string& name);

Result<void> read_seed(const Json& value, const SamplingContext& context, common_params_sampling& to);
Json show_seed(const common_params_sampling& from);

Result<void> read_dry_base(const Json& value, const SamplingContext& context, common_params_sampling& to);
Json show_dry_base(const common_params_sampling& from);

Result<void> read_sequence_breakers(const Json& value, const SamplingContext& context, common_params_sampling& to);
Json show_sequence_breakers(const common_params_sampling& from);

Result<void> read_samplers(const Json& value, const SamplingContext& context, common_params_sampling& to);
Json show_samplers(const common_params_sampling& from);
// What a list of samplers needs of the other fields.
Result<void> check_samplers(const SamplingContext& context, const common_params_sampling& params);

Result<void> read_logit_bias(const Json& value, const SamplingContext& context, common_params_sampling& to);
Json show_logit_bias(const common_params_sampling& from);

}  // namespace coppice::engine
