#include "api/cache_routes.h"

namespace coppice::api {
namespace {

Json tier_json(const tier::TierStats& stats) {
  return {{"bytes", stats.bytes},
          {"bytes_max", stats.bytes_max},
          {"blocks", stats.blocks},
          {"evictions", stats.evictions},
          {"hits", stats.hits}};
}

Json stats_json(const tier::Stats& stats) {
  Json out = {{"object", "cache"}, {"host", tier_json(stats.host)}, {"disk", nullptr}};
  if (stats.disk_state.configured) {
    const tier::DiskStats& state = stats.disk_state;
    Json disk = tier_json(stats.disk);
    disk["degraded"] = state.degraded;
    disk["reason"] = state.reason.empty() ? Json(nullptr) : Json(state.reason);
    disk["file_bytes"] = state.segment_bytes;
    disk["written_bytes"] = state.written_bytes;
    disk["read_bytes"] = state.read_bytes;
    disk["unwritten_blocks"] = state.unwritten;
    out["disk"] = std::move(disk);
  }
  out["quarantined"] = stats.quarantined;
  out["stalls_ms"] = {{"save_worst", to_ms(stats.stalls.save_worst)},
                      {"restore_worst", to_ms(stats.stalls.restore_worst)}};
  return out;
}

}  // namespace

Result<Inspection> get_cache(const Call&) {
  return inspection([](sched::Inspector& engine) { return Result<tier::Stats>(engine.tier_stats()); }, stats_json);
}

Result<Inspection> post_cache_flush(const Call&) {
  return Inspection([](sched::Inspector& engine, const OnWorded& answer) {
    engine.flush_tiers([answer](tier::FlushResult result) {
      answer([result] {
        return json_response({{"blocks", result.blocks}, {"bytes", result.bytes}, {"failed", result.failed}});
      });
    });
  });
}

}  // namespace coppice::api
