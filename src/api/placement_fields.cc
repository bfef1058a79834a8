#include "api/placement_fields.h"

#include <limits>

#include "api/fields.h"
#include "base/json.h"
#include "session/session_key.h"

namespace coppice::api {
namespace {

constexpr std::size_t kSaltBytesMax = 1024;

// A slot by number; -1 (the default) names none.
std::optional<SlotId> read_slot(FieldReader& in, const char* name, std::int32_t n_slots) {
  const auto slot = in.integer(name, -1, std::numeric_limits<std::int32_t>::max());
  if (!slot || *slot < 0) return std::nullopt;
  if (*slot >= n_slots) {
    in.fail(name,
            "names slot " + std::to_string(*slot) + ", but there are only slots 0 to " + std::to_string(n_slots - 1));
    return std::nullopt;
  }
  return SlotId{static_cast<std::int32_t>(*slot)};
}

}  // namespace

Result<PlacementFields> read_placement(const Json& body, const HttpRequest& request, std::string_view key,
                                       const Keyring& keyring, const Services& services) {
  const auto header = [&](std::string_view name) {
    return services.session_inference ? request.header(name) : std::string_view{};
  };
  auto session = session::find_session_key(body, header, services.limits.session_key_bytes_max);
  if (!session) return std::unexpected(session.error());

  PlacementFields out;
  out.placement.session = std::move(session->key);
  out.placement.session_rule = std::move(session->rule);

  FieldReader in(body);
  out.parent_session = in.string("parent_session_id", services.limits.session_key_bytes_max);
  out.placement.id_slot = read_slot(in, "id_slot", services.model.n_slots);
  out.placement.cache_prompt = in.boolean("cache_prompt", services.default_cache_prompt);
  out.placement.shared_pool_slot = read_slot(in, "shared_pool_slot", services.model.n_slots);
  const auto shared = in.integer("shared_prefix_n_tokens", 0, std::numeric_limits<TokenPos>::max());
  out.placement.shared_prefix_n_tokens = static_cast<TokenPos>(shared.value_or(0));
  out.placement.ns = keyring.namespace_of(key, in.string("cache_salt", kSaltBytesMax));

  if (const Json* pool = in.find("pool"); pool != nullptr && *pool != "") {
    in.fail("pool", "names a pool, but this version has none; use 'shared_pool_slot' and 'shared_prefix_n_tokens'");
  }
  if (in.error()) return std::unexpected(*in.error());
  return out;
}

}  // namespace coppice::api
