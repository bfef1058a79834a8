// A request inside the scheduler: what was asked, how far it is, what to report.
//
// States of a request, and the function that moves it on:
//
//   state               holds                 leaves by
//   queued              blocks, if any        try_admit: a slot is free, cells suffice     -> restoring, prefilling
//                                             try_admit: its blocks are read just now      -> waiting_for_blocks
//                                             try_admit: another one computes its prefix   -> waiting_for_prefix
//                                             cancel, stop, can never fit                  -> done
//   waiting_for_blocks  a place in the queue  its blocks were read from the disk, or cannot be, or the disk
//                                             hangs (disk_is_late)                         -> queued
//                                             cancel, stop                                 -> done
//   waiting_for_prefix  a place in the queue  has_passed: the other one is past the point
//                                             where they part, has ended or was paused     -> queued
//                                             cancel, stop                                 -> done
//   restoring           slot, cells, blocks   all blocks are in its cells, or no more can be had   -> prefilling
//                                             (where host memory has no room for all blocks at once, the disk reads on
//                                             meanwhile)
//                                             cells without their state are of no use: once   -> queued
//                                             pause, cancel, stop                          -> as below
//   prefilling          slot, cells           last prompt token evaluated                  -> decoding
//                                             pause: an older request needs cells          -> queued
//                                             cancel, stop, failure                        -> done
//   decoding            slot, cells           stop word, end of generation, length         -> done
//                                             pause                                        -> queued
//                                             cancel, stop, failure                        -> done
//   done                nothing               -
//
// A paused request keeps its sampler, its text and its counts; it comes back with prompt + generated tokens as its
// prompt. Whatever it leaves by, its sequence keeps the tokens evaluated so far (spec B17), unless cache_prompt was
// false.
#pragma once

#include <optional>
#include <utility>

#include "kv/lease.h"
#include "kv/slot_map.h"
#include "sched/output_text.h"
#include "sched/request.h"
#include "sched/tiering.h"

namespace coppice::sched {

enum class Phase : std::uint8_t { queued, waiting_for_blocks, waiting_for_prefix, restoring, prefilling, decoding };

// Whether the request's cells are still filling with its prompt, so that others may wait for that.
constexpr bool fills_prompt(Phase phase) { return phase == Phase::restoring || phase == Phase::prefilling; }

// What a request waits for that another one is computing (spec B16).
struct PrefixWait {
  SlotId slot;  // where the other one runs
  RequestId leader;
  TokenPos until = 0;  // tokens that its sequence has to hold: up to where the two prompts part
};

// The session that placement follows and records. The further ones of n completions stay out of it: the session is
// where the first one runs, and its next turn goes there.
inline std::optional<kv::SessionKey> session_of(const Placement& placement) {
  if (placement.session.empty() || placement.is_fork) return std::nullopt;
  return kv::SessionKey{placement.ns, placement.session};
}

struct Active {
  explicit Active(Request r, TimePoint now)
      : request(std::move(r)), text(std::move(request.text.stop)), input(request.prompt), arrived(now) {}

  Request request;
  OutputText text;
  std::shared_ptr<const Tokens>
      input;                       // what has to be in the cells: the prompt, after a pause with the generated tokens
  Tokens generated;                // sampled so far; the last one is not in the cells yet
  std::optional<Token> end_token;  // the sampled token that ended the generation
  Phase phase = Phase::queued;
  PrefixWait wait;                                // in waiting_for_prefix
  bool waits_for_cells = false;                   // in queued: nobody may overtake it
  TokenPos replaced_begin = 0, replaced_end = 0;  // what the request that it replaces computed of its own prompt
  std::int32_t overtaken = 0;                     // by requests that came later
  TierHold hold;                                  // what the tiers have of the prompt; until it is restored
  TokenPos restore_until = 0;                     // in restoring
  kv::Lease lease;                                // on its sequence, while it has a slot
  std::size_t pins_done = 0;                      // of the request's pins, from the shortest on
  std::vector<TokenPos> checkpoints;  // where its state is to be saved on the way, shortest first (spec B21)
  std::size_t checkpoints_done = 0;
  TokenPos keep_at = 0;                    // tokens that its sequence has to hold for there to be more to save
  std::optional<TimePoint> disk_deadline;  // in waiting_for_blocks and restoring: when it goes on without what is read
  std::uint64_t disk_bytes_seen = 0;       // that the disk had read in all when that was set
  bool without_tiers = false;              // restoring has failed once: it is not tried again
  Report report;
  TimePoint arrived, admitted, restored, prefilled;
  bool prompt_accepted = false;  // the sampler has seen the prompt
  bool started = false;          // was admitted at least once

  TokenPos input_length() const { return static_cast<TokenPos>(input->size()); }
  std::optional<kv::SessionKey> session() const { return session_of(request.placement); }
};

}  // namespace coppice::sched
