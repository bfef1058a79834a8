#include "api/generation_fields.h"

#include <algorithm>
#include <limits>

#include "api/fields.h"
#include "base/json.h"

namespace coppice::api {
namespace {

constexpr std::int64_t kInt32Max = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kPredictMsMax = 1'000'000'000'000;  // some 30 years; keeps microseconds far from overflow
constexpr std::size_t kStopBytesMax = 1024;

void read_probs(FieldReader& in, ApiKind api, const Limits& limits, GenerationFields& out) {
  const auto set = [&](std::int64_t n) {
    out.return_probs = true;
    out.n_alternatives = static_cast<std::int32_t>(n);
  };
  const auto n_probs = in.integer("n_probs", 0, limits.n_probs_max);
  const auto top = in.integer("top_logprobs", 0, limits.n_probs_max);
  const Json* logprobs = in.find("logprobs");
  // Chat has a switch and a count; the older APIs have a count under the switch's name.
  if (api == ApiKind::chat) {
    if (in.boolean("logprobs", false)) {
      set(top.value_or(0));
    } else if (top.value_or(0) > 0) {
      in.fail("top_logprobs", "needs 'logprobs': true");
    }
  } else if (logprobs != nullptr && logprobs->is_boolean()) {
    if (logprobs->get<bool>()) set(top.value_or(1));
  } else if (const auto n = in.integer("logprobs", 0, limits.n_probs_max); n && (*n > 0 || api != ApiKind::native)) {
    set(*n);
  }
  if (n_probs.value_or(0) > 0) set(*n_probs);
  out.post_sampling_probs = in.boolean("post_sampling_probs", false);
}

void read_stop(FieldReader& in, const Limits& limits, GenerationFields& out) {
  out.stop = in.strings("stop", static_cast<std::size_t>(limits.stop_words_max), kStopBytesMax);
  std::erase(out.stop, "");  // would end every answer before it begins
}

void refuse_unsupported(FieldReader& in, ApiKind api) {
  if (api != ApiKind::completions) return;
  if (in.boolean("echo", false)) in.fail("echo", "is not supported");
  if (const Json* suffix = in.find("suffix"); suffix != nullptr && *suffix != "") {
    in.fail("suffix", "is not supported");
  }
  if (in.integer("best_of", 0, kInt32Max).value_or(1) > 1) in.fail("best_of", "is not supported above 1");
}

}  // namespace

engine::ProbsOptions GenerationFields::probs_options() const {
  return {.n_probs = return_probs ? std::max(n_alternatives, 1) : 0, .post_sampling = post_sampling_probs};
}

Result<GenerationFields> read_generation(const Json& body, ApiKind api, const Services& services) {
  const Limits& limits = services.limits;
  FieldReader in(body);
  GenerationFields out;

  const auto n_predict = in.integer({"n_predict", "max_completion_tokens", "max_tokens"}, -1, kInt32Max);
  out.n_predict = static_cast<std::int32_t>(n_predict.value_or(-1));
  if (out.n_predict < 0) out.n_predict = services.default_n_predict;
  out.n = static_cast<std::int32_t>(in.integer({"n_cmpl", "n"}, 1, limits.n_completions_max).value_or(1));
  read_stop(in, limits, out);
  out.stream = in.boolean("stream", false);
  if (const Json* options = in.find("stream_options"); options != nullptr) {
    if (!options->is_object()) {
      in.fail("stream_options", "must be an object");
    } else {
      FieldReader nested(*options, "stream_options.");
      out.include_usage = nested.boolean("include_usage", false);
      if (nested.error()) return std::unexpected(*nested.error());
    }
  }
  out.return_tokens = in.boolean("return_tokens", false);
  out.return_progress = in.boolean("return_progress", false);
  in.boolean("timings_per_token", false);
  read_probs(in, api, limits, out);
  const auto predict_ms = in.integer("t_max_predict_ms", -1, kPredictMsMax).value_or(-1);
  if (predict_ms > 0) out.predict_limit = std::chrono::milliseconds(predict_ms);
  constexpr std::int64_t kRandomSeed = std::numeric_limits<std::uint32_t>::max();  // llama.cpp's own sign for it
  out.seed = in.integer("seed", -1, kRandomSeed);
  if (out.seed == -1 || out.seed == kRandomSeed) out.seed.reset();
  out.ping_interval_s =
      static_cast<std::int32_t>(in.integer("sse_ping_interval", -1, kInt32Max).value_or(limits.sse_ping_interval_s));
  if (api == ApiKind::native) out.response_fields = in.strings("response_fields", 64, 256);
  if (in.find("idle_prefill") != nullptr) out.idle_prefill = in.boolean("idle_prefill", false);
  in.string("model", 1024);  // one model is served whatever its name; only the type is checked
  refuse_unsupported(in, api);
  if (in.error()) return std::unexpected(*in.error());
  return out;
}

}  // namespace coppice::api
