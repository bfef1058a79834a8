#include "api/session_routes.h"

#include <string>
#include <vector>

#include "api/place_json.h"
#include "base/clock.h"

namespace coppice::api {
namespace {

constexpr std::int64_t kLimitDefault = 100, kLimitMax = 1000;

Json session_json(const sched::SessionInfo& session) {
  return {
      {"name", session.name},
      {"parent", session.parent.empty() ? Json(nullptr) : Json(session.parent)},
      {"tokens", session.prompt_tokens},
      {"held", session.held},
      {"tiers", {{"host", session.in_host}, {"disk", session.on_disk}}},
      {"where", place_json(session.place)},
      {"requests", session.requests},
      {"idle_s", to_s(session.idle)},
  };
}

}  // namespace

Result<Inspection> list_sessions(const Call& call) {
  const auto ns = call.query_ns();
  if (!ns) return std::unexpected(ns.error());
  QueryReader in(call.http.query);
  const auto limit = static_cast<std::size_t>(in.integer("limit", 1, kLimitMax, kLimitDefault));
  if (in.error()) return std::unexpected(*in.error());
  using Sessions = std::vector<sched::SessionInfo>;
  return inspection(
      [ns = *ns, limit](sched::Inspector& engine) { return Result<Sessions>(engine.sessions(ns, limit)); },
      [](const Sessions& sessions) { return list_json(sessions, session_json); });
}

Result<Inspection> get_session(const Call& call) {
  const auto ns = call.query_ns();
  if (!ns) return std::unexpected(ns.error());
  return inspection(
      [ns = *ns, name = std::string(call.name)](sched::Inspector& engine) { return engine.session(ns, name); },
      session_json);
}

Result<Inspection> delete_session(const Call& call) {
  const auto ns = call.query_ns();
  if (!ns) return std::unexpected(ns.error());
  return inspection(
      [ns = *ns, name = std::string(call.name)](sched::Inspector& engine) { return engine.forget_session(ns, name); },
      deleted_json);
}

}  // namespace coppice::api
