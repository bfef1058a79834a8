// Prometheus metrics, by name in one place. Thread-safe: every value is an atomic inside prometheus-cpp.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

namespace prometheus {
class Counter;
class Gauge;
class Histogram;
class Registry;
}  // namespace prometheus

namespace coppice::obs {

// What became of the tokens that background work computed, and why background work was given up.
enum class Prepared : std::uint8_t { computed, used, wasted };
enum class BackgroundDrop : std::uint8_t { superseded, moved_on, full, no_room, failed };

class Metrics {
 public:
  Metrics();
  ~Metrics();

  prometheus::Counter& background(Prepared result) { return *background_tokens[static_cast<std::size_t>(result)]; }
  prometheus::Counter& background(BackgroundDrop why) { return *background_dropped[static_cast<std::size_t>(why)]; }

  // Prometheus text exposition format 0.0.4.
  std::string text() const;

 private:
  std::shared_ptr<prometheus::Registry> registry_;

 public:
  prometheus::Gauge& kv_cells_used;
  prometheus::Gauge& kv_cells_total;
  prometheus::Gauge& kv_cells_pinned;   // by pools and pins
  prometheus::Gauge& sequences_parked;  // held, but no slot's and no pool
  prometheus::Gauge& pools;
  prometheus::Gauge& prefix_pins;
  prometheus::Gauge& slots_busy;
  prometheus::Gauge& slots_total;
  prometheus::Gauge& requests_queued;
  prometheus::Gauge& queue_limit;
  prometheus::Gauge& connections_open;
  prometheus::Gauge& sessions_known;
  prometheus::Gauge& responses_stored;
  prometheus::Gauge& responses_stored_bytes;
  prometheus::Gauge& turns_remembered;
  prometheus::Gauge& turns_remembered_bytes;
  prometheus::Gauge& next_turns_queued;  // turns whose next prompt's beginning is being looked for
  prometheus::Counter& prompt_tokens;
  prometheus::Counter& prompt_tokens_computed;
  std::array<prometheus::Counter*, 5> prompt_tokens_reused;  // by source: slot, donor, pool, host, disk
  prometheus::Counter& tokens_predicted;
  prometheus::Counter& requests_finished;
  prometheus::Counter& requests_failed;
  prometheus::Counter& requests_cancelled;
  prometheus::Counter& requests_refused;    // queue full, or shutting down
  prometheus::Counter& requests_paused;     // gave their cells back and recomputed later
  prometheus::Counter& requests_coalesced;  // waited for another one's prefill instead of computing the same
  prometheus::Counter& cells_folded;        // duplicates freed by sharing a donor's equal prefix
  prometheus::Counter& sequences_evicted;
  prometheus::Counter& sequences_spilled;
  prometheus::Counter& cells_spilled;
  prometheus::Counter& prefix_pins_refused;
  prometheus::Counter& streams_dropped;  // clients that read too slowly
  prometheus::Counter& decode_steps;
  prometheus::Histogram& queue_seconds;
  prometheus::Histogram& prefill_seconds;
  prometheus::Histogram& time_to_first_token_seconds;
  prometheus::Histogram& step_seconds;
  std::array<prometheus::Counter*, 3> background_tokens;   // by Prepared
  std::array<prometheus::Counter*, 5> background_dropped;  // by BackgroundDrop
  prometheus::Counter& background_preempted;
  prometheus::Gauge& background_queued;
  prometheus::Histogram& background_step_seconds;

  // Host and disk tier (tier/tiers.h), in this order.
  std::array<prometheus::Gauge*, 2> tier_bytes;
  std::array<prometheus::Gauge*, 2> tier_bytes_limit;
  std::array<prometheus::Gauge*, 2> tier_blocks;
  std::array<prometheus::Counter*, 2> tier_evictions;
  std::array<prometheus::Counter*, 2> tier_hits;
  prometheus::Histogram& tier_save_seconds;     // a block out of the cells; no step takes longer for it
  prometheus::Histogram& tier_restore_seconds;  // a block into the cells
  prometheus::Counter& tier_unsaved;            // beginnings of prompts that were gone before they could be saved
  prometheus::Counter& tier_blocks_quarantined;
  prometheus::Counter& tier_puts_refused;
  prometheus::Gauge& tier_disk_degraded;
  prometheus::Gauge& tier_disk_segment_bytes;
  prometheus::Gauge& tier_disk_queue_bytes;
  prometheus::Gauge& tier_disk_unwritten_blocks;
  prometheus::Counter& tier_disk_written_bytes;
  prometheus::Counter& tier_disk_read_bytes;
  prometheus::Counter& tier_disk_held_back;
  prometheus::Counter& tier_disk_write_failures;
  prometheus::Counter& tier_disk_given_up;

  void count_miss(const char* reason);       // coppice_prefix_misses_total{reason}
  void count_guess(bool right);              // coppice_prompt_guesses_total{result}
  void count_next_turn(const char* result);  // coppice_next_turns_total{result}
  void count_http(int status);               // coppice_http_responses_total{code}
};

}  // namespace coppice::obs
