// Coppice in the simulation: the real scheduler and tiers, on a runner without a model that moves the clock.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "kv/eviction.h"
#include "simulate/costs.h"
#include "simulate/server.h"
#include "tier/eviction.h"

namespace coppice::simulate {

// Null: what the server has by itself.
struct Policies {
  std::shared_ptr<const kv::EvictionPolicy> cells;
  std::shared_ptr<const tier::BlockEvictionPolicy> host;
  std::optional<std::int32_t> overtake_limit = {};
};

// `costs` and `clock` must outlive it.
std::unique_ptr<Server> make_coppice(const Room& room, const Policies& policies, const Costs& costs, ManualClock& clock,
                                     Listener listener);

}  // namespace coppice::simulate
