#include "api/placement_fields.h"

#include <limits>

#include "api/fields.h"
#include "base/json.h"
#include "session/session_key.h"

namespace coppice::api {
namespace {

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

Result<sched::Placement> read_placement(const Json& body, const Call& call) {
  const Services& services = call.services();
  const Limits& limits = services.limits;
  FieldReader in(body);
  sched::Placement out;
  out.ns = call.ns(in.string("cache_salt", limits.cache_salt_bytes_max));

  session::SessionSources sources;
  sources.header = [&](std::string_view name) { return call.http.header(name); };
  sources.minted = [&](std::string_view id) {
    return services.turns == nullptr ? std::string{} : services.turns->session_of(out.ns, id);
  };
  sources.infer = services.session_inference;
  sources.bytes_max = limits.session_key_bytes_max;
  auto session = session::find_session_key(body, sources);
  if (!session) return std::unexpected(session.error());
  out.session = std::move(session->key);
  out.session_rule = std::move(session->rule);
  out.parent_session = std::move(session->parent);

  out.id_slot = read_slot(in, "id_slot", services.model.n_slots);
  out.cache_prompt = in.boolean("cache_prompt", services.default_cache_prompt);
  out.shared_pool_slot = read_slot(in, "shared_pool_slot", services.model.n_slots);
  const auto shared = in.integer("shared_prefix_n_tokens", 0, std::numeric_limits<TokenPos>::max());
  out.shared_prefix_n_tokens = static_cast<TokenPos>(shared.value_or(0));
  out.pool = in.string("pool", limits.pool_name_bytes_max);
  if (in.error()) return std::unexpected(*in.error());
  return out;
}

}  // namespace coppice::api
