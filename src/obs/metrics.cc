#include "obs/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <sstream>

namespace coppice::obs {
namespace {

using prometheus::BuildCounter;
using prometheus::BuildGauge;
using prometheus::BuildHistogram;
using prometheus::Registry;

prometheus::Gauge& gauge(Registry& r, const char* name, const char* help) {
  return BuildGauge().Name(name).Help(help).Register(r).Add({});
}

prometheus::Counter& counter(Registry& r, const char* name, const char* help) {
  return BuildCounter().Name(name).Help(help).Register(r).Add({});
}

prometheus::Histogram& seconds(Registry& r, const char* name, const char* help) {
  // One millisecond to two minutes, about a factor of two apart: warm turns and cold 100k-token prefills both resolve.
  static const prometheus::Histogram::BucketBoundaries bounds{0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2,
                                                              0.5,   1,     2,     5,    10,   20,   60,  120};
  return BuildHistogram().Name(name).Help(help).Register(r).Add({}, bounds);
}

std::array<prometheus::Gauge*, 2> gauge_by_tier(Registry& r, const char* name, const char* help) {
  auto& family = BuildGauge().Name(name).Help(help).Register(r);
  return {&family.Add({{"tier", "host"}}), &family.Add({{"tier", "disk"}})};
}

std::array<prometheus::Counter*, 2> counter_by_tier(Registry& r, const char* name, const char* help) {
  auto& family = BuildCounter().Name(name).Help(help).Register(r);
  return {&family.Add({{"tier", "host"}}), &family.Add({{"tier", "disk"}})};
}

std::array<prometheus::Counter*, 5> reused_by_source(Registry& r) {
  auto& family = BuildCounter()
                     .Name("coppice_prompt_tokens_reused_total")
                     .Help("Prompt tokens whose KV was reused, by where it was found.")
                     .Register(r);
  return {&family.Add({{"source", "slot"}}), &family.Add({{"source", "donor"}}), &family.Add({{"source", "pool"}}),
          &family.Add({{"source", "host"}}), &family.Add({{"source", "disk"}})};
}

std::array<prometheus::Counter*, 3> background_by_result(Registry& r) {
  auto& family = BuildCounter()
                     .Name("coppice_background_tokens_total")
                     .Help("Prompt tokens that were computed before anybody asked, and what became of them.")
                     .Register(r);
  return {&family.Add({{"result", "computed"}}), &family.Add({{"result", "used"}}),
          &family.Add({{"result", "wasted"}})};
}

std::array<prometheus::Counter*, 5> background_by_reason(Registry& r) {
  auto& family =
      BuildCounter().Name("coppice_background_dropped_total").Help("Background work that was given up.").Register(r);
  return {&family.Add({{"reason", "superseded"}}), &family.Add({{"reason", "moved_on"}}),
          &family.Add({{"reason", "full"}}), &family.Add({{"reason", "no_room"}}), &family.Add({{"reason", "failed"}})};
}

}  // namespace

Metrics::Metrics()
    : registry_(std::make_shared<Registry>()),
      kv_cells_used(
          gauge(*registry_, "coppice_kv_cells_used", "KV cells that hold a token; a shared cell counts once.")),
      kv_cells_total(gauge(*registry_, "coppice_kv_cells_total", "KV cells that the context has.")),
      kv_cells_pinned(gauge(*registry_, "coppice_kv_cells_pinned", "KV cells that named pools and cache marks hold.")),
      sequences_parked(gauge(*registry_, "coppice_sequences_parked",
                             "Sequences that are held for anyone to start from, but are no slot's and no pool.")),
      pools(gauge(*registry_, "coppice_pools", "Named pools.")),
      prefix_pins(gauge(*registry_, "coppice_prefix_pins", "Prefixes that clients' cache marks keep.")),
      slots_busy(gauge(*registry_, "coppice_slots_busy", "Slots that run a request.")),
      slots_total(gauge(*registry_, "coppice_slots_total", "Slots that the server has.")),
      requests_queued(gauge(*registry_, "coppice_requests_queued", "Requests waiting for a slot or for cells.")),
      queue_limit(gauge(*registry_, "coppice_queue_limit", "Requests that may wait; one more is refused.")),
      connections_open(gauge(*registry_, "coppice_connections_open", "Open client connections.")),
      sessions_known(gauge(*registry_, "coppice_sessions_known", "Sessions whose last prompt is remembered.")),
      responses_stored(gauge(*registry_, "coppice_responses_stored", "Responses that can be continued by their id.")),
      responses_stored_bytes(
          gauge(*registry_, "coppice_responses_stored_bytes", "Bytes that stored responses and their input take.")),
      turns_remembered(
          gauge(*registry_, "coppice_turns_remembered", "Answers that are remembered for exact continuation.")),
      turns_remembered_bytes(
          gauge(*registry_, "coppice_turns_remembered_bytes", "Bytes that remembered answers take.")),
      next_turns_queued(gauge(*registry_, "coppice_next_turns_queued",
                              "Answered turns for which the beginning of the next prompt is to be found.")),
      prompt_tokens(counter(*registry_, "coppice_prompt_tokens_total", "Prompt tokens of requests that began to run.")),
      prompt_tokens_computed(
          counter(*registry_, "coppice_prompt_tokens_computed_total", "Prompt tokens that the model evaluated.")),
      prompt_tokens_reused(reused_by_source(*registry_)),
      tokens_predicted(counter(*registry_, "coppice_tokens_predicted_total", "Tokens generated.")),
      requests_finished(counter(*registry_, "coppice_requests_finished_total", "Requests that ran to their end.")),
      requests_failed(counter(*registry_, "coppice_requests_failed_total", "Requests that ended with an error.")),
      requests_cancelled(
          counter(*registry_, "coppice_requests_cancelled_total", "Requests whose client went away before the end.")),
      requests_refused(counter(*registry_, "coppice_requests_refused_total",
                               "Requests refused because the queue was full or the server was shutting down.")),
      requests_paused(counter(*registry_, "coppice_requests_paused_total",
                              "Times a running request gave its cells to an older one, to recompute later.")),
      requests_coalesced(
          counter(*registry_, "coppice_requests_coalesced_total",
                  "Requests that waited for another one's prefill instead of computing the same prefix.")),
      cells_folded(counter(*registry_, "coppice_kv_cells_folded_total",
                           "Cells freed because another sequence held the same tokens.")),
      sequences_evicted(
          counter(*registry_, "coppice_sequences_evicted_total", "Idle sequences cleared to make room for others.")),
      sequences_spilled(counter(*registry_, "coppice_sequences_spilled_total",
                                "Idle sequences left to host memory alone, as their cells slowed others down.")),
      cells_spilled(counter(*registry_, "coppice_kv_cells_spilled_total", "Cells that this freed.")),
      prefix_pins_refused(counter(*registry_, "coppice_prefix_pins_refused_total",
                                  "Cache marks with a ttl whose prefix could not be kept.")),
      streams_dropped(counter(*registry_, "coppice_streams_dropped_total", "Streams whose client read too slowly.")),
      decode_steps(counter(*registry_, "coppice_engine_steps_total", "Batches that the model evaluated.")),
      queue_seconds(seconds(*registry_, "coppice_queue_seconds", "Time from arrival to a slot.")),
      prefill_seconds(seconds(*registry_, "coppice_prefill_seconds", "Time from slot to the last prompt token.")),
      time_to_first_token_seconds(
          seconds(*registry_, "coppice_time_to_first_token_seconds", "Time from arrival to the first sampled token.")),
      step_seconds(seconds(*registry_, "coppice_engine_step_seconds", "Time of one engine step.")),
      background_tokens(background_by_result(*registry_)),
      background_dropped(background_by_reason(*registry_)),
      background_preempted(counter(*registry_, "coppice_background_preempted_total",
                                   "Times that background work gave way to a request.")),
      background_queued(gauge(*registry_, "coppice_background_queued", "Prompts that wait to be prepared.")),
      background_step_seconds(seconds(*registry_, "coppice_background_step_seconds",
                                      "Time of one step of background work: the most that a request waits for it.")),
      tier_bytes(gauge_by_tier(*registry_, "coppice_tier_bytes", "Bytes of KV blocks, reserved ones included.")),
      tier_bytes_limit(gauge_by_tier(*registry_, "coppice_tier_bytes_limit", "Bytes that a tier may hold.")),
      tier_blocks(gauge_by_tier(*registry_, "coppice_tier_blocks", "KV blocks held.")),
      tier_evictions(counter_by_tier(*registry_, "coppice_tier_evictions_total", "KV blocks given up for room.")),
      tier_hits(counter_by_tier(*registry_, "coppice_tier_hits_total", "KV blocks that requests started from.")),
      tier_save_seconds(
          seconds(*registry_, "coppice_tier_save_seconds", "Time to copy one KV block out of the cells.")),
      tier_restore_seconds(
          seconds(*registry_, "coppice_tier_restore_seconds", "Time to copy one KV block into the cells.")),
      tier_unsaved(counter(*registry_, "coppice_tier_unsaved_total",
                           "Prompts and turns whose end could not be saved to the tiers.")),
      tier_blocks_quarantined(counter(*registry_, "coppice_tier_blocks_quarantined_total",
                                      "KV blocks that could not be read or restored, and were removed.")),
      tier_puts_refused(counter(*registry_, "coppice_tier_puts_refused_total",
                                "KV blocks that found no room, as all else was in use.")),
      tier_disk_degraded(gauge(*registry_, "coppice_tier_disk_degraded",
                               "1 while the disk tier cannot be written; blocks then stay in host memory.")),
      tier_disk_segment_bytes(
          gauge(*registry_, "coppice_tier_disk_segment_bytes", "Size of the disk tier's files, dead bytes included.")),
      tier_disk_queue_bytes(gauge(*registry_, "coppice_tier_disk_queue_bytes", "Bytes on their way to the disk.")),
      tier_disk_unwritten_blocks(
          gauge(*registry_, "coppice_tier_disk_unwritten_blocks", "KV blocks that are to be written to the disk.")),
      tier_disk_written_bytes(counter(*registry_, "coppice_tier_disk_written_bytes_total",
                                      "Bytes written to the disk tier, compaction included.")),
      tier_disk_read_bytes(counter(*registry_, "coppice_tier_disk_read_bytes_total", "Bytes read from the disk tier.")),
      tier_disk_held_back(
          counter(*registry_, "coppice_tier_disk_held_back_total", "KV blocks whose write the hourly limit delayed.")),
      tier_disk_write_failures(
          counter(*registry_, "coppice_tier_disk_write_failures_total", "KV blocks whose write to the disk failed.")),
      tier_disk_given_up(counter(*registry_, "coppice_tier_disk_given_up_total",
                                 "KV blocks that left host memory before they could be written to the disk.")) {}

Metrics::~Metrics() = default;

std::string Metrics::text() const { return prometheus::TextSerializer().Serialize(registry_->Collect()); }

void Metrics::count_miss(const char* reason) {
  BuildCounter()
      .Name("coppice_prefix_misses_total")
      .Help("Requests that reused less than could be hoped for, by reason.")
      .Register(*registry_)
      .Add({{"reason", reason}})
      .Increment();
}

void Metrics::count_guess(bool right) {
  BuildCounter()
      .Name("coppice_prompt_guesses_total")
      .Help("Prompts that the engine began with before the whole conversation was rendered.")
      .Register(*registry_)
      .Add({{"result", right ? "right" : "wrong"}})
      .Increment();
}

void Metrics::count_next_turn(const char* result) {
  BuildCounter()
      .Name("coppice_next_turns_total")
      .Help(
          "Answered turns by what became of the next prompt's beginning: held already; unknown; dropped, as the "
          "session went on or too many waited; or submitted as background work, and then prepared or given_up.")
      .Register(*registry_)
      .Add({{"result", result}})
      .Increment();
}

void Metrics::count_http(int status) {
  BuildCounter()
      .Name("coppice_http_responses_total")
      .Help("HTTP responses, by status.")
      .Register(*registry_)
      .Add({{"code", std::to_string(status)}})
      .Increment();
}

}  // namespace coppice::obs
