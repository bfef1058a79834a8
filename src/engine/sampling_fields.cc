#include "engine/sampling_fields.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <sstream>
#include <string>
#include <variant>

#include "base/json.h"
#include "base/json_find.h"
#include "common.h"
#include "engine/sampling_values.h"

namespace coppice::engine {
namespace {

using Params = common_params_sampling;

struct Float {
  float Params::* to;
  double min, max;
};
struct Int {
  std::int32_t Params::* to;
  std::int64_t min, max;
};
struct Bool {
  bool Params::* to;
};
// How many past tokens to look at: -1 means all. Never more than there are cells, as the memory is taken in advance.
struct LookBack {
  std::int32_t Params::* to;
};
struct Custom {
  Result<void> (*read)(const Json& value, const SamplingContext& context, Params& to);
  Json (*show)(const Params& from);
};

struct Field {
  const char* name;
  const char* alias;  // read if `name` is missing; may be nullptr
  std::variant<Float, Int, Bool, LookBack, Custom> kind;
};

constexpr double kAny = 1e4;  // a limit for fields that llama-server does not limit: far beyond use, far from overflow
constexpr std::int64_t kInt32Max = std::numeric_limits<std::int32_t>::max();

// The limits are llama-server v0.4.0's where it has some, but a number beyond them is refused instead of moved to the
// nearest limit: a client that asks for a temperature of 1e30 has a bug, and should hear of it. The others keep every
// logit finite: infinities would turn into NaN, which sorting inside llama.cpp does not survive.
constexpr std::array kFields = {
    Field{"seed", nullptr, Custom{read_seed, show_seed}},
    Field{"temperature", nullptr, Float{&Params::temp, 0, kAny}},
    Field{"dynatemp_range", nullptr, Float{&Params::dynatemp_range, 0, kAny}},
    Field{"dynatemp_exponent", nullptr, Float{&Params::dynatemp_exponent, 0, 100}},
    Field{"top_k", nullptr, Int{&Params::top_k, -1, kInt32Max}},
    Field{"top_p", nullptr, Float{&Params::top_p, 0, 1}},
    Field{"min_p", nullptr, Float{&Params::min_p, 0, 1}},
    Field{"top_n_sigma", nullptr, Float{&Params::top_n_sigma, -1, kAny}},
    Field{"xtc_probability", nullptr, Float{&Params::xtc_probability, 0, 1}},
    Field{"xtc_threshold", nullptr, Float{&Params::xtc_threshold, 0, 1}},
    Field{"typical_p", "typ_p", Float{&Params::typ_p, 0, 1}},
    Field{"repeat_last_n", nullptr, LookBack{&Params::penalty_last_n}},
    Field{"repeat_penalty", nullptr, Float{&Params::penalty_repeat, 0.01, 100}},
    Field{"presence_penalty", nullptr, Float{&Params::penalty_present, -kAny, kAny}},
    Field{"frequency_penalty", nullptr, Float{&Params::penalty_freq, -kAny, kAny}},
    Field{"dry_multiplier", nullptr, Float{&Params::dry_multiplier, 0, kAny}},
    Field{"dry_base", nullptr, Custom{read_dry_base, show_dry_base}},
    Field{"dry_allowed_length", nullptr, Int{&Params::dry_allowed_length, 0, kInt32Max}},
    Field{"dry_penalty_last_n", nullptr, LookBack{&Params::dry_penalty_last_n}},
    Field{"dry_sequence_breakers", nullptr, Custom{read_sequence_breakers, show_sequence_breakers}},
    Field{"mirostat", nullptr, Int{&Params::mirostat, 0, 2}},
    Field{"mirostat_tau", nullptr, Float{&Params::mirostat_tau, 0, kAny}},
    Field{"mirostat_eta", nullptr, Float{&Params::mirostat_eta, 0, kAny}},
    Field{"adaptive_target", nullptr, Float{&Params::adaptive_target, -1, 1}},
    Field{"adaptive_decay", nullptr, Float{&Params::adaptive_decay, 0, 0.99}},
    Field{"min_keep", nullptr, Int{&Params::min_keep, 0, kInt32Max}},
    Field{"samplers", nullptr, Custom{read_samplers, show_samplers}},
    Field{"logit_bias", nullptr, Custom{read_logit_bias, show_logit_bias}},
    Field{"ignore_eos", nullptr, Bool{&Params::ignore_eos}},
};

template <class T>
Result<T> within(T value, T min, T max, const char* name) {
  if (value >= min && value <= max) return value;
  std::ostringstream range;
  range << '"' << name << "\" must be between " << min << " and " << max;
  return invalid(range.str(), name);
}

// Reads one value into one field; one overload per kind.
class Reader {
 public:
  Reader(const char* name, const Json& value, const SamplingContext& context, Params& to)
      : name_(name), value_(value), context_(context), to_(to) {}

  Result<void> operator()(const Float& f) const {
    const auto number = read_number(value_, name_);
    if (!number) return std::unexpected(number.error());
    const auto limited = within(*number, f.min, f.max, name_);
    if (!limited) return std::unexpected(limited.error());
    to_.*f.to = static_cast<float>(*limited);
    return {};
  }
  Result<void> operator()(const Int& f) const { return whole(f.to, f.min, f.max); }
  Result<void> operator()(const LookBack& f) const {
    if (auto r = whole(f.to, -1, kInt32Max); !r) return r;
    if (to_.*f.to < 0 || to_.*f.to > context_.n_cells) to_.*f.to = context_.n_cells;
    return {};
  }
  Result<void> operator()(const Bool& f) const {
    if (!value_.is_boolean()) return invalid("\"" + std::string(name_) + "\" must be true or false", name_);
    to_.*f.to = value_.get<bool>();
    return {};
  }
  Result<void> operator()(const Custom& f) const { return f.read(value_, context_, to_); }

 private:
  Result<void> whole(std::int32_t Params::* to, std::int64_t min, std::int64_t max) const {
    const auto number = read_integer(value_, name_);
    if (!number) return std::unexpected(number.error());
    const auto limited = within(*number, min, max, name_);
    if (!limited) return std::unexpected(limited.error());
    to_.*to = static_cast<std::int32_t>(*limited);
    return {};
  }

  const char* name_;
  const Json& value_;
  const SamplingContext& context_;
  Params& to_;
};

struct Shower {
  const Params& from;
  Json operator()(const Float& f) const { return from.*f.to; }
  Json operator()(const Int& f) const { return from.*f.to; }
  Json operator()(const LookBack& f) const { return from.*f.to; }
  Json operator()(const Bool& f) const { return from.*f.to; }
  Json operator()(const Custom& f) const { return f.show(from); }
};

// A temperature so low that dividing by it overflows is greedy; a zero says so.
void settle(const SamplingContext& context, Params& to) {
  if (to.temp < 1e-4F) to.temp = 0;
  if (to.ignore_eos) ban_end_tokens(context.vocab, to);
}

}  // namespace

Result<void> read_sampling_fields(const Json& body, const SamplingContext& context, common_params_sampling& to) {
  for (const Field& field : kFields) {
    const char* name = field.name;
    const Json* value = find_field(body, name);
    if (value == nullptr && field.alias != nullptr) value = find_field(body, name = field.alias);
    if (value == nullptr) continue;
    if (auto r = std::visit(Reader(name, *value, context, to), field.kind); !r) return r;
  }
  if (auto r = check_samplers(context, to); !r) return r;
  settle(context, to);
  return {};
}

Json show_sampling_fields(const common_params_sampling& from) {
  Json to = Json::object();
  for (const Field& field : kFields) to[field.name] = std::visit(Shower{from}, field.kind);
  return to;
}

}  // namespace coppice::engine
