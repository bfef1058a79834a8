#include "api/pool_routes.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/json_text.h"
#include "api/pool_fields.h"
#include "api/report_json.h"
#include "base/clock.h"

namespace coppice::api {
namespace {

// The answer to POST /v1/pools. It is never streamed.
class PoolFormat final : public Format {
 public:
  explicit PoolFormat(sched::PoolSpec spec) : spec_(std::move(spec)) {}

  std::string on_progress(const Answer&, const sched::Progress&) override { return {}; }
  std::string on_delta(const Answer&, const sched::TextDelta&) override { return {}; }
  std::string on_finished(const Answer&, const sched::TextDelta&) override { return {}; }
  std::string on_end(const std::vector<Answer>&) override { return {}; }
  std::string on_error(const Error&) override { return {}; }

  Json whole(const std::vector<Answer>& answers) override {
    const Answer& answer = answers.front();
    return {
        {"name", spec_.name},
        {"tokens", answer.prompt->size()},
        {"computed", answer.report.computed},
        {"reused", answer.report.reused()},
        {"ttl_s", spec_.ttl.count() > 0 ? Json(to_s(spec_.ttl)) : Json(nullptr)},
        {"coppice", coppice_json(answer.report, {})},
    };
  }

 private:
  const sched::PoolSpec spec_;
};

Json pool_json(const sched::PoolInfo& pool) {
  return {
      {"name", pool.name},
      {"tokens", pool.tokens},
      {"exclusive", pool.exclusive},
      {"uses", pool.uses},
      {"age_s", to_s(pool.age)},
      {"idle_s", to_s(pool.idle)},
      {"expires_in_s", pool.expires_in ? Json(to_s(*pool.expires_in)) : Json(nullptr)},
  };
}

}  // namespace

Result<CompletionPlan> plan_pool(const Call& call) {
  auto body = parse_body(call.http.body);
  if (!body) return std::unexpected(body.error());
  auto pool = read_pool(*body, call.services());
  if (!pool) return std::unexpected(pool.error());

  CompletionPlan plan;
  plan.prompts.push_back(std::move(pool->tokens));
  plan.generation.n_predict = 0;
  plan.placement.ns = call.ns(pool->cache_salt);
  plan.body = Json::object();  // nothing is sampled, so fields of sampling mean nothing here
  plan.format = std::make_unique<PoolFormat>(pool->spec);
  plan.make_pool = std::move(pool->spec);
  plan.status = 201;
  return plan;
}

Result<Inspection> list_pools(const Call& call) {
  const auto ns = call.query_ns();
  if (!ns) return std::unexpected(ns.error());
  using Pools = std::vector<sched::PoolInfo>;
  return inspection([ns = *ns](sched::Inspector& engine) { return Result<Pools>(engine.pools(ns)); },
                    [](const Pools& pools) { return list_json(pools, pool_json); });
}

Result<Inspection> get_pool(const Call& call) {
  const auto ns = call.query_ns();
  if (!ns) return std::unexpected(ns.error());
  return inspection(
      [ns = *ns, name = std::string(call.name)](sched::Inspector& engine) { return engine.pool(ns, name); }, pool_json);
}

Result<Inspection> delete_pool(const Call& call) {
  const auto ns = call.query_ns();
  if (!ns) return std::unexpected(ns.error());
  return inspection(
      [ns = *ns, name = std::string(call.name)](sched::Inspector& engine) { return engine.drop_pool(ns, name); },
      deleted_json);
}

}  // namespace coppice::api
