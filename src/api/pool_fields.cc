#include "api/pool_fields.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>
#include <utility>

#include "api/fields.h"
#include "api/json_text.h"
#include "api/prompts.h"
#include "api/stable_prefix.h"
#include "base/json.h"

namespace coppice::api {
namespace {

constexpr double kPoolTtlMaxS = 1e9;  // some 30 years; keeps microseconds far from overflow

Duration read_ttl(FieldReader& in) {
  const double ttl_s = in.number("ttl", 0, kPoolTtlMaxS).value_or(0);
  // Rounded up: 0 would mean for ever.
  return std::chrono::ceil<Duration>(std::chrono::duration<double>(ttl_s));
}

Result<Tokens> read_prompt(const Json& body, const Services& services) {
  auto prompts = read_prompts(body, services.tokenizer, 1, services.model.n_ctx);
  if (!prompts) return std::unexpected(prompts.error());
  return std::move(prompts->front());
}

Result<Tokens> read_tokens(const Json& list, const Services& services) {
  const auto is_number = [](const Json& item) { return item.is_number(); };
  if (!list.is_array() || !std::ranges::all_of(list, is_number)) {
    return invalid("'tokens' must be a list of token ids", "tokens");
  }
  return tokenize_mixed(list, services.tokenizer, false, false, "tokens");
}

// REQUIRES: just one of the three is there.
Result<Tokens> read_prefix(const Json& body, const FieldReader& in, const Services& services) {
  if (in.find("messages") != nullptr) return stable_prefix(body, services);
  if (in.find("prompt") != nullptr) return read_prompt(body, services);
  return read_tokens(*in.find("tokens"), services);
}

std::string place_of(std::size_t i) { return "pools[" + std::to_string(i) + "]"; }

}  // namespace

Result<PoolFields> read_pool(const Json& body, const Services& services) {
  const Limits& limits = services.limits;
  FieldReader in(body);
  PoolFields out;
  out.spec.name = in.string("name", limits.pool_name_bytes_max);
  if (out.spec.name.empty()) in.fail("name", "is missing: a pool needs one");
  out.spec.ttl = read_ttl(in);
  out.cache_salt = in.string("cache_salt", limits.cache_salt_bytes_max);
  int n_prefixes = 0;
  for (const char* field : {"messages", "prompt", "tokens"}) n_prefixes += in.find(field) != nullptr ? 1 : 0;
  if (n_prefixes == 0) in.fail("messages", "is missing: a pool is made of 'messages', 'prompt' or 'tokens'");
  if (n_prefixes > 1)
    in.fail("messages", "is one of 'messages', 'prompt' and 'tokens', of which a pool takes just one");
  if (in.error()) return std::unexpected(*in.error());

  auto tokens = read_prefix(body, in, services);
  if (!tokens) return std::unexpected(tokens.error());
  if (auto fits = check_prompt(*tokens, services.model.n_ctx); !fits) return std::unexpected(fits.error());
  out.tokens = *std::move(tokens);
  return out;
}

Result<std::vector<Json>> parse_pool_file(std::string_view text) {
  auto value = parse_json(text, "file");
  if (!value) return std::unexpected(value.error());
  std::vector<Json> pools;
  if (value->is_array()) {
    pools.assign(value->begin(), value->end());
  } else {
    pools.push_back(*std::move(value));
  }
  for (std::size_t i = 0; i < pools.size(); ++i) {
    if (!pools[i].is_object()) {
      return invalid(place_of(i) + ": must be a JSON object, not " + std::string(pools[i].type_name()));
    }
  }
  return pools;
}

Result<std::vector<PoolFields>> read_pools(const std::vector<Json>& pools, const Services& services) {
  std::vector<PoolFields> out;
  std::set<std::pair<std::string, std::string>> names;  // with their salts
  for (std::size_t i = 0; i < pools.size(); ++i) {
    auto pool = read_pool(pools[i], services);
    if (!pool) {
      Error error = pool.error();
      error.message = place_of(i) + ": " + error.message;
      return std::unexpected(std::move(error));
    }
    if (!names.emplace(pool->spec.name, pool->cache_salt).second) {
      return invalid(place_of(i) + ": 'name' is '" + pool->spec.name + "', as that of a pool before it", "name");
    }
    out.push_back(*std::move(pool));
  }
  return out;
}

}  // namespace coppice::api
