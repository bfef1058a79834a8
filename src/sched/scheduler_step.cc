// One engine step: the batch, the cells that it needs, and what its logits lead to.
#include <prometheus/counter.h>
#include <prometheus/histogram.h>

#include <algorithm>
#include <cassert>

#include "obs/log.h"
#include "sched/batch_plan.h"
#include "sched/scheduler.h"

namespace coppice::sched {

// Fills batch_ and picks_. False if nothing can be evaluated now; the next step then finds another state.
bool Scheduler::build_batch() {
  batch_.clear();
  picks_.clear();
  // Pausing a request to make room changes who is decoding, hence the loop.
  while (sequences().free_cells() < count_decoding()) {
    if (!make_room(count_decoding())) return false;
  }
  for (Slot& s : slots_) {
    if (!s.active || s.active->phase != Phase::decoding) continue;
    picks_.push_back({static_cast<std::int32_t>(batch_.size()), s.id});
    batch_.push_back({s.active->generated.back(), held(s), s.seq(), true});
  }
  add_prefill();
  if (!batch_.empty()) return true;
  if (std::any_of(slots_.begin(), slots_.end(),
                  [](const Slot& s) { return s.active && s.active->phase == Phase::restoring; })) {
    return false;  // the next step restores more
  }
  // Only prefilling requests, and none of them can go on: the youngest gives its cells to the others.
  make_room(1);
  return false;
}

TokenPos Scheduler::count_decoding() const {
  return static_cast<TokenPos>(
      std::ranges::count_if(slots_, [](const Slot& s) { return s.active && s.active->phase == Phase::decoding; }));
}

void Scheduler::add_prefill() {
  std::vector<Slot*> prefilling;
  for (Slot& s : slots_) {
    if (s.active && s.active->phase == Phase::prefilling) prefilling.push_back(&s);
  }
  if (prefilling.empty()) return;
  std::sort(prefilling.begin(), prefilling.end(),
            [](const Slot* a, const Slot* b) { return a->active->request.id < b->active->request.id; });
  std::vector<PrefillNeed> needs;
  TokenPos wanted = 0;
  for (const Slot* s : prefilling) {
    needs.push_back(prefill_need(*s));
    wanted += needs.back().remaining;
  }
  // However many requests decode, prompts get at least a quarter of a step; a batch never exceeds what the model takes.
  const auto decoding = static_cast<TokenPos>(batch_.size());
  const TokenPos step_max = background_running() ? background_step_tokens() : options_.step_tokens_max;
  const TokenPos share = std::max({step_max - decoding, step_max / 4, 1});
  TokenPos budget = std::min({share, runner_.info().n_batch - decoding, wanted});
  while (sequences().free_cells() - decoding < budget && evict_one(budget + decoding - sequences().free_cells())) {
  }
  budget = std::min(budget, sequences().free_cells() - decoding);

  const std::vector<TokenPos> shares = share_prefill(needs, budget);
  for (std::size_t i = 0; i < prefilling.size(); ++i) {
    // Where a state cannot go back, the one that waits can start only from this very point: stop there once.
    const bool exact = runner_.info().rewind != engine::Rewind::anywhere;
    append_prefill(*prefilling[i], exact ? std::min(shares[i], needs[i].urgent) : shares[i]);
  }
}

PrefillNeed Scheduler::prefill_need(const Slot& s) const {
  const TokenPos remaining = s.active->input_length() - held(s);
  PrefillNeed need{.remaining = remaining, .urgent = remaining};
  // Where a state cannot go back, it can be kept at this very point only.
  const bool exact = runner_.info().rewind != engine::Rewind::anywhere;
  if (const auto pin = next_pin(*s.active); exact && pin) need.urgent = std::min(need.urgent, *pin - held(s));
  for (const auto& a : queue_) {
    if (a->phase != Phase::waiting_for_prefix || a->wait.leader != s.active->request.id) continue;
    if (a->wait.until > held(s)) need.urgent = std::min(need.urgent, a->wait.until - held(s));
  }
  if (const auto stop = checkpoint_stop(*s.active)) need.urgent = std::min(need.urgent, *stop - held(s));
  return need;
}

void Scheduler::append_prefill(const Slot& s, TokenPos count) {
  const Active& a = *s.active;
  const TokenPos begin = held(s);
  for (TokenPos pos = begin; pos < begin + count; ++pos) {
    const bool last = pos + 1 == a.input_length();
    if (last) picks_.push_back({static_cast<std::int32_t>(batch_.size()), s.id});
    batch_.push_back({(*a.input)[static_cast<std::size_t>(pos)], pos, s.seq(), last && a.request.n_predict != 0});
  }
}

// Frees cells: idle sequences first, least recently used first; then the youngest running request is paused, so that
// the oldest always gets to its end. Alone and still short, a request has filled the whole context and ends. False if a
// request had to end.
bool Scheduler::make_room(TokenPos cells) {
  if (background_running()) return end_background(Drop::no_room), false;
  while (sequences().free_cells() < cells) {
    if (evict_one(cells - sequences().free_cells())) continue;
    if (running() == 1) {
      if (residency_.give_up_a_pin()) continue;
      TextDelta tail{.text = youngest().active->text.flush()};
      finish(youngest(), StopKind::length, std::move(tail));
      return false;
    }
    pause(youngest());
    return true;
  }
  return true;
}

// The request goes back to its place in the queue; its cells become an idle prefix, which is evicted as far as needed.
void Scheduler::pause(Slot& s) {
  const TokenPos had = held(s);
  auto a = release(s);
  Tokens input = *a->request.prompt;
  input.insert(input.end(), a->generated.begin(), a->generated.end());
  a->input = std::make_shared<const Tokens>(std::move(input));
  if (a->phase == Phase::decoding) a->report.decode += clock_.now() - a->prefilled;
  ++a->report.pauses;
  metrics_.requests_paused.Increment();
  obs::log_info("request paused", "id={} slot={} held={}", a->request.id.value, s.id.value, had);
  enqueue(std::move(a));
}

void Scheduler::note_evaluated() {
  TokenPos computed = 0;
  for (const engine::BatchItem& item : batch_) {
    residency_.sequences().evaluated(item.seq, item.token);
    Active& a = *slot(*sequences().notes(item.seq).slot).active;
    if (a.phase != Phase::prefilling) continue;
    ++a.report.computed;
    if (!a.request.background) ++computed;
  }
  metrics_.prompt_tokens_computed.Increment(computed);
  for (Slot& s : slots_) {
    if (!s.active || s.active->phase != Phase::prefilling) continue;
    pin_prefixes(*s.active);
    save_checkpoints(*s.active);
  }
  for (Slot& s : slots_) {
    if (s.active && s.active->phase != Phase::restoring) keep_filled(*s.active, s.seq());
  }
  for (Slot& s : slots_) {
    if (!s.active || s.active->phase != Phase::prefilling || !s.active->request.report_progress) continue;
    const Active& a = *s.active;
    a.request.sink->on_progress({a.input_length(), a.report.reused(), held(s), clock_.now() - a.admitted});
  }
}

// Up to where the request's next pin goes, which it does not hold yet.
std::optional<TokenPos> Scheduler::next_pin(const Active& a) const {
  const auto& pins = a.request.placement.pins;
  return a.request.placement.cache_prompt && a.pins_done < pins.size() ? std::optional(pins[a.pins_done].length)
                                                                       : std::nullopt;
}

// Keeps what the request asked for and has by now.
void Scheduler::pin_prefixes(Active& a) {
  const Placement& p = a.request.placement;
  const SeqId seq = a.lease.seq();
  for (auto next = next_pin(a); next && *next <= sequences().length(seq); next = next_pin(a)) {
    const Duration ttl = p.pins[a.pins_done++].ttl;
    const std::span<const Token> prefix(a.request.prompt->data(), static_cast<std::size_t>(*next));
    if (residency_.pin_prefix(seq, p.ns, prefix, ttl)) {
      a.report.pinned = *next;
    } else {
      ++a.report.pins_refused;
      metrics_.prefix_pins_refused.Increment();
    }
  }
}

void Scheduler::sample_all() {
  for (const Pick& pick : picks_) {
    Slot& s = slot(pick.slot);
    if (s.active->phase == Phase::prefilling) {
      finish_prefill(s);
      if (s.active->request.n_predict == 0) {
        finish(s, StopKind::length, {});
        continue;
      }
    }
    Active& a = *s.active;
    take_token(s, runner_.sample(*a.request.sampler, pick.index, a.request.probs));
  }
}

void Scheduler::finish_prefill(Slot& s) {
  Active& a = *s.active;
  a.phase = Phase::decoding;
  if (a.request.placement.cache_prompt) residency_.fold(s.seq());
  retry_ = true;  // waiting requests may have been short of what is shared or folded now
  a.prefilled = clock_.now();
  a.report.prefill += a.prefilled - a.restored;
  if (a.request.background) return;
  metrics_.prefill_seconds.Observe(to_s(a.prefilled - a.restored));
  if (!a.prompt_accepted) a.request.sampler->accept_prompt(*a.request.prompt);
  a.prompt_accepted = true;
}

void Scheduler::take_token(Slot& s, engine::Sampled sampled) {
  Active& a = *s.active;
  const Token token = sampled.token;
  if (++a.report.predicted == 1) metrics_.time_to_first_token_seconds.Observe(to_s(clock_.now() - a.arrived));
  const TextOptions& options = a.request.text;
  if (tokenizer_.is_end_of_generation(token)) {
    a.end_token = token;
    return finish(s, StopKind::end_of_generation, {.text = a.text.flush()});
  }

  std::string piece = tokenizer_.piece(token, options.special || options.visible.contains(token));
  TextDelta delta{.text = a.text.add(piece)};
  if (options.return_tokens) delta.tokens.push_back(token);
  if (a.request.probs.n_probs > 0) delta.probs.push_back({std::move(sampled), std::move(piece)});
  a.generated.push_back(token);
  if (a.text.stop_word()) return finish(s, StopKind::stop_word, std::move(delta));

  const auto length = static_cast<TokenPos>(a.request.prompt->size() + a.generated.size());
  const bool out_of_time = a.request.predict_limit.count() > 0 && a.text.has_line_break() &&
                           clock_.now() - a.prefilled > a.request.predict_limit;
  if (a.report.predicted == a.request.n_predict || length >= runner_.info().n_cells || out_of_time) {
    delta.text += a.text.flush();
    return finish(s, StopKind::length, std::move(delta));
  }
  if (!delta.text.empty() || !delta.tokens.empty() || !delta.probs.empty()) {
    a.request.sink->on_delta(std::move(delta));
  }
}

// A failure of the backend leaves the sequences of the batch in an unknown state: they are ended, with their requests.
// Out of cells the memory is as before. (The cell map counts exactly, but a sliding window's smaller cache has cells of
// its own, which it does not count.) Then idle sequences are given up one after the other, then the youngest request is
// paused; alone and with nothing to give up, a request cannot be helped.
void Scheduler::end_with_failed_batch(engine::DecodeStatus status) {
  const bool no_cells = status == engine::DecodeStatus::no_cells;
  obs::log_error("batch failed", "status={} tokens={} requests={}", no_cells ? "no_cells" : "failed", batch_.size(),
                 running());
  if (no_cells && free_something_for_retry()) return;
  for (Slot& s : slots_) {
    if (!s.active) continue;
    const SeqId seq = s.seq();
    if (std::none_of(batch_.begin(), batch_.end(), [&](const auto& item) { return item.seq == seq; })) continue;
    auto a = std::move(s.active);
    a->lease.release();
    s.last_used = ++releases_;
    retry_ = true;
    residency_.drop(seq);
    if (a->request.background) {
      drop_background(std::move(a), Drop::failed);
      continue;
    }
    end_early(std::move(a), {ErrorKind::internal, "the model could not evaluate the batch", {}});
  }
}

bool Scheduler::free_something_for_retry() {
  if (background_running()) return end_background(Drop::no_room), true;
  if (residency_.evict_one(kv::Shortage::sequences, 0, wanted_sequences())) return true;
  if (running() < 2) return residency_.give_up_a_pin();
  Slot& s = youngest();
  const SeqId seq = s.seq();
  pause(s);
  if (sequences().in_use(seq)) residency_.drop(seq);
  return true;
}

// The running request that arrived last. REQUIRES: there is one.
Scheduler::Slot& Scheduler::youngest() {
  return *std::max_element(slots_.begin(), slots_.end(), [](const Slot& a, const Slot& b) {
    return (a.active ? a.active->request.id.value : 0) < (b.active ? b.active->request.id.value : 0);
  });
}

}  // namespace coppice::sched
