#include "engine/sampling_values.h"

#include <llama.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "base/json.h"
#include "common.h"
#include "sampling.h"

namespace coppice::engine {
namespace {

using Params = common_params_sampling;

constexpr std::size_t kBreakersMax = 32;  // each one is looked for in the text of every token of the vocabulary
constexpr std::size_t kSamplersMax = 32;
constexpr std::size_t kBiasesMax = 4096;    // each one is looked up for each token
constexpr std::size_t kBiasTextMax = 1024;  // bytes of a bias given as text
constexpr float kBiasMax = 1e4F;
constexpr std::int32_t kInfillTopKMax = 256;  // infill compares every pair of candidates

Tokens tokenize(const llama_vocab* vocab, const std::string& text) {
  return common_tokenize(vocab, text, /* add_special = */ false, /* parse_special = */ false);
}

// A number, or false for "never".
std::optional<float> read_bias(const Json& value) {
  if (value.is_boolean()) return value.get<bool>() ? std::nullopt : std::optional(-INFINITY);
  if (!value.is_number()) return std::nullopt;
  const double bias = value.get<double>();
  if (!std::isfinite(bias)) return std::nullopt;
  return static_cast<float>(std::clamp<double>(bias, -kBiasMax, kBiasMax));
}

Result<void> bad_bias() {
  return invalid(
      "\"logit_bias\" must be an array of [token, bias] pairs or an object from token to bias, each token an id or "
      "text "
      "and each bias a number or false",
      "logit_bias");
}

Result<void> add_bias(Tokens tokens, const Json& value, Params& to) {
  const auto bias = read_bias(value);
  if (!bias) return bad_bias();
  if (to.logit_bias.size() + tokens.size() > kBiasesMax) {
    return invalid("\"logit_bias\" may have at most " + std::to_string(kBiasesMax) + " entries", "logit_bias");
  }
  for (Token token : tokens) to.logit_bias.push_back({token, *bias});
  return {};
}

Result<Tokens> bias_token(std::int64_t token, const SamplingContext& context) {
  if (token < 0 || token >= llama_vocab_n_tokens(context.vocab)) {
    return invalid("\"logit_bias\" has token " + std::to_string(token) + ", which is not in the vocabulary",
                   "logit_bias");
  }
  return Tokens{static_cast<Token>(token)};
}

Result<Tokens> bias_text(const std::string& text, const SamplingContext& context) {
  if (text.size() > kBiasTextMax) return invalid("a text in \"logit_bias\" is too long", "logit_bias");
  return tokenize(context.vocab, text);
}

// A key of the object form: "123" is an id, anything else is text.
Result<Tokens> bias_key(const std::string& key, const SamplingContext& context) {
  std::int64_t token = 0;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), token);
  const bool is_id = error == std::errc{} && end == key.data() + key.size();
  return is_id ? bias_token(token, context) : bias_text(key, context);
}

Result<Tokens> bias_element(const Json& key, const SamplingContext& context) {
  if (key.is_string()) return bias_text(key.get_ref<const std::string&>(), context);
  if (!key.is_number_integer()) return invalid("a token in \"logit_bias\" must be an id or text", "logit_bias");
  const auto id = read_integer(key, "logit_bias");
  return id ? bias_token(*id, context) : std::unexpected(id.error());
}

// Letters and names that llama-common knows. It drops others, and logs them, which is not for a client's text to cause.
std::vector<common_sampler_type> sampler_of_letter(char letter) {
  for (int i = COMMON_SAMPLER_TYPE_DRY; i <= COMMON_SAMPLER_TYPE_ADAPTIVE_P; ++i) {
    const auto type = static_cast<common_sampler_type>(i);
    if (letter != '?' && common_sampler_type_to_chr(type) == letter) return {type};
  }
  return {};
}
std::vector<common_sampler_type> sampler_of_name(const std::string& name) {
  const auto is_plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-'; };
  if (name.size() > 16 || !std::ranges::all_of(name, is_plain)) return {};
  return common_sampler_types_from_names({name});
}

}  // namespace

Result<double> read_number(const Json& value, const std::string& name) {
  if (!value.is_number()) return invalid("\"" + name + "\" must be a number", name);
  const double number = value.get<double>();
  if (!std::isfinite(number)) return invalid("\"" + name + "\" must be a finite number", name);
  return number;
}

Result<std::int64_t> read_integer(const Json& value, const std::string& name) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  if (value.is_number_unsigned()) {
    return static_cast<std::int64_t>(std::min<std::uint64_t>(value.get<std::uint64_t>(), kMax));
  }
  if (value.is_number_integer()) return value.get<std::int64_t>();
  const auto number = read_number(value, name);
  if (!number || *number != std::trunc(*number)) return invalid("\"" + name + "\" must be an integer", name);
  constexpr double kEdge = 9.2e18;  // just inside of 64 bits
  return static_cast<std::int64_t>(std::clamp(*number, -kEdge, kEdge));
}

// Any integer is a seed, as in OpenAI's API; llama.cpp takes the lower 32 bits, and -1 means a random one.
Result<void> read_seed(const Json& value, const SamplingContext&, common_params_sampling& to) {
  const auto seed = read_integer(value, "seed");
  if (!seed) return std::unexpected(seed.error());
  constexpr std::int64_t kMax = std::numeric_limits<std::uint32_t>::max();  // this one means "random" too, like -1
  if (*seed < -1 || *seed > kMax) return invalid("\"seed\" must be between -1 and 4294967295", "seed");
  to.seed = static_cast<std::uint32_t>(*seed);
  return {};
}

Json show_seed(const common_params_sampling& from) { return from.seed; }

// From 0 to below 1 means the default, as llama-server does.
Result<void> read_dry_base(const Json& value, const SamplingContext&, common_params_sampling& to) {
  const auto base = read_number(value, "dry_base");
  if (!base) return std::unexpected(base.error());
  if (*base < 0 || *base > 1e4) return invalid("\"dry_base\" must be between 0 and 10000", "dry_base");
  if (*base >= 1) to.dry_base = static_cast<float>(*base);
  return {};
}

Json show_dry_base(const common_params_sampling& from) { return from.dry_base; }

Result<void> read_sequence_breakers(const Json& value, const SamplingContext&, common_params_sampling& to) {
  const auto is_text = [](const Json& v) { return v.is_string() && !v.get_ref<const std::string&>().empty(); };
  if (!value.is_array() || value.empty() || value.size() > kBreakersMax || !std::ranges::all_of(value, is_text)) {
    return invalid("\"dry_sequence_breakers\" must be an array of 1 to " + std::to_string(kBreakersMax) + " strings",
                   "dry_sequence_breakers");
  }
  to.dry_sequence_breakers = value.get<std::vector<std::string>>();
  return {};
}

Json show_sequence_breakers(const common_params_sampling& from) { return from.dry_sequence_breakers; }

Result<void> read_samplers(const Json& value, const SamplingContext&, common_params_sampling& to) {
  std::vector<std::vector<common_sampler_type>> found;  // by entry; empty where it is unknown
  if (value.is_string()) {
    for (char c : value.get_ref<const std::string&>()) found.push_back(sampler_of_letter(c));
  } else if (value.is_array() && std::ranges::all_of(value, [](const Json& v) { return v.is_string(); })) {
    for (const Json& v : value) found.push_back(sampler_of_name(v.get<std::string>()));
  } else {
    return invalid("\"samplers\" must be an array of names or a string of letters", "samplers");
  }
  if (found.size() > kSamplersMax) {
    return invalid("\"samplers\" may have at most " + std::to_string(kSamplersMax) + " entries", "samplers");
  }
  to.samplers.clear();
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i].empty()) {
      return invalid("\"samplers\": entry " + std::to_string(i + 1) +
                         " is unknown; the names are penalties, dry, top_n_sigma, top_k, typ_p, top_p, min_p, xtc, "
                         "temperature, adaptive_p and infill",
                     "samplers");
    }
    to.samplers.push_back(found[i].front());
  }
  return {};
}

Json show_samplers(const common_params_sampling& from) {
  Json names = Json::array();
  for (common_sampler_type type : from.samplers) names.push_back(common_sampler_type_to_str(type));
  return names;
}

// The infill sampler compares all candidates with each other, and needs a token to end with.
Result<void> check_samplers(const SamplingContext& context, const common_params_sampling& params) {
  const auto infill = std::ranges::find(params.samplers, COMMON_SAMPLER_TYPE_INFILL);
  if (infill == params.samplers.end() || params.mirostat != 0) return {};
  const bool after_top_k = std::find(params.samplers.begin(), infill, COMMON_SAMPLER_TYPE_TOP_K) != infill;
  if (!after_top_k || params.top_k < 1 || params.top_k > kInfillTopKMax) {
    return invalid(
        "\"samplers\": infill must come after top_k, with \"top_k\" from 1 to " + std::to_string(kInfillTopKMax),
        "samplers");
  }
  if (llama_vocab_eot(context.vocab) == LLAMA_TOKEN_NULL && llama_vocab_eos(context.vocab) == LLAMA_TOKEN_NULL) {
    return invalid("\"samplers\": infill needs a model with an end-of-text token", "samplers");
  }
  return {};
}

Result<void> read_logit_bias(const Json& value, const SamplingContext& context, common_params_sampling& to) {
  if (!value.is_structured()) return bad_bias();
  to.logit_bias.clear();
  if (value.is_object()) {
    for (const auto& [key, bias] : value.items()) {
      auto tokens = bias_key(key, context);
      if (!tokens) return std::unexpected(tokens.error());
      if (auto r = add_bias(*std::move(tokens), bias, to); !r) return r;
    }
    return {};
  }
  for (const Json& pair : value) {
    if (!pair.is_array() || pair.size() != 2) return bad_bias();
    auto tokens = bias_element(pair[0], context);
    if (!tokens) return std::unexpected(tokens.error());
    if (auto r = add_bias(*std::move(tokens), pair[1], to); !r) return r;
  }
  return {};
}

Json show_logit_bias(const common_params_sampling& from) {
  Json list = Json::array();
  for (const auto& [token, bias] : from.logit_bias) {
    // JSON has no infinity; false is how a request says it.
    list.push_back({{"token", token}, {"bias", std::isfinite(bias) ? Json(bias) : Json(false)}});
  }
  return list;
}

void ban_end_tokens(const llama_vocab* vocab, common_params_sampling& to) {
  for (Token token = 0; token < llama_vocab_n_tokens(vocab); ++token) {
    if (llama_vocab_is_eog(vocab, token)) to.logit_bias.push_back({token, -INFINITY});
  }
}

}  // namespace coppice::engine
