// What all handlers share. Immutable, or with a lock of its own, so safe from any thread; exchanges keep it alive.
#pragma once

#include "api/auth.h"
#include "api/mark_positions.h"
#include "api/next_turns.h"
#include "api/output_rules.h"
#include "api/response_store.h"
#include "api/services.h"
#include "api/turn_digest_memory.h"

namespace coppice::api {

struct Context {
  explicit Context(Services wired)
      : services(std::move(wired)),
        keyring(services.api_keys, services.namespace_secret),
        responses(std::make_unique<ResponseStore>(services.limits.stored_responses_max,
                                                  services.limits.stored_responses_bytes_max, services.metrics)),
        turn_digests(services.limits.turn_digests_max),
        output_rules(services.limits.output_rules_max),
        mark_positions(services.limits.mark_positions_max),
        next_turns(services) {}

  const Services services;
  const Keyring keyring;
  const std::unique_ptr<ResponseStore> responses;
  mutable TurnDigestMemory turn_digests;
  mutable OutputRules output_rules;
  mutable MarkPositions mark_positions;
  mutable NextTurns next_turns;
};

}  // namespace coppice::api
