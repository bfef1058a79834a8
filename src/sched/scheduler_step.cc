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
  const auto count_decoding = [&] {
    return static_cast<TokenPos>(std::count_if(
        slots_.begin(), slots_.end(), [](const Slot& s) { return s.active && s.active->phase == Phase::decoding; }));
  };
  // Pausing a request to make room changes who is decoding, hence the loop.
  while (sequences_.free_cells() < count_decoding()) {
    if (!make_room(count_decoding())) return false;
  }
  for (Slot& s : slots_) {
    if (!s.active || s.active->phase != Phase::decoding) continue;
    picks_.push_back({static_cast<std::int32_t>(batch_.size()), s.id});
    batch_.push_back({s.active->generated.back(), sequences_.length(s.seq), s.seq, true});
  }
  add_prefill();
  if (!batch_.empty()) return true;
  // Only prefilling requests, and none of them can go on: the youngest gives its cells to the others.
  make_room(1);
  return false;
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
    needs.push_back({s->active->input_length() - sequences_.length(s->seq)});
    wanted += needs.back().remaining;
  }
  // However many requests decode, prompts get at least a quarter of a step; a batch never exceeds what the model takes.
  const auto decoding = static_cast<TokenPos>(batch_.size());
  const TokenPos share = std::max({options_.step_tokens_max - decoding, options_.step_tokens_max / 4, 1});
  TokenPos budget = std::min({share, runner_.info().n_batch - decoding, wanted});
  while (sequences_.free_cells() - decoding < budget && evict_one(nullptr)) {
  }
  budget = std::min(budget, sequences_.free_cells() - decoding);

  const std::vector<TokenPos> shares = share_prefill(needs, budget);
  for (std::size_t i = 0; i < prefilling.size(); ++i) append_prefill(*prefilling[i], shares[i]);
}

void Scheduler::append_prefill(const Slot& s, TokenPos count) {
  const Active& a = *s.active;
  const TokenPos begin = sequences_.length(s.seq);
  for (TokenPos pos = begin; pos < begin + count; ++pos) {
    const bool last = pos + 1 == a.input_length();
    if (last) picks_.push_back({static_cast<std::int32_t>(batch_.size()), s.id});
    batch_.push_back({(*a.input)[static_cast<std::size_t>(pos)], pos, s.seq, last && a.request.n_predict != 0});
  }
}

// Frees cells: idle sequences first, least recently used first; then the youngest running request is paused, so that
// the oldest always gets to its end. Alone and still short, a request has filled the whole context and ends. False if a
// request had to end.
bool Scheduler::make_room(TokenPos cells) {
  while (sequences_.free_cells() < cells) {
    if (evict_one(nullptr)) continue;
    Slot* youngest = nullptr;
    for (Slot& s : slots_) {
      if (s.active && (!youngest || s.active->request.id > youngest->active->request.id)) youngest = &s;
    }
    if (running() == 1) {
      TextDelta tail{.text = youngest->active->text.flush()};
      finish(*youngest, StopKind::length, std::move(tail));
      return false;
    }
    pause(*youngest);
    return true;
  }
  return true;
}

// The request goes back to its place in the queue; its cells become an idle prefix, which is evicted as far as needed.
void Scheduler::pause(Slot& s) {
  auto a = release(s);
  Tokens input = *a->request.prompt;
  input.insert(input.end(), a->generated.begin(), a->generated.end());
  a->input = std::make_shared<const Tokens>(std::move(input));
  if (a->phase == Phase::decoding) a->report.decode += clock_.now() - a->prefilled;
  ++a->report.pauses;
  metrics_.requests_paused.Increment();
  obs::log_info("request paused", "id={} slot={} held={}", a->request.id.value, s.id.value, sequences_.length(s.seq));
  enqueue(std::move(a));
}

void Scheduler::note_evaluated() {
  TokenPos computed = 0;
  for (const engine::BatchItem& item : batch_) {
    sequences_.evaluated(item.seq, item.token);
    Active& a = *slots_[static_cast<std::size_t>(item.seq.value)].active;
    if (a.phase != Phase::prefilling) continue;
    ++a.report.computed;
    ++computed;
  }
  metrics_.prompt_tokens_computed.Increment(computed);
  for (Slot& s : slots_) {
    if (!s.active || s.active->phase != Phase::prefilling || !s.active->request.report_progress) continue;
    const Active& a = *s.active;
    a.request.sink->on_progress(
        {a.input_length(), a.report.reused(), sequences_.length(s.seq), clock_.now() - a.admitted});
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
  a.prefilled = clock_.now();
  a.report.prefill += a.prefilled - a.admitted;
  metrics_.prefill_seconds.Observe(to_ms(a.prefilled - a.admitted) / 1000);
  if (!a.prompt_accepted) a.request.sampler->accept_prompt(*a.request.prompt);
  a.prompt_accepted = true;
}

void Scheduler::take_token(Slot& s, engine::Sampled sampled) {
  Active& a = *s.active;
  const Token token = sampled.token;
  if (++a.report.predicted == 1) metrics_.time_to_first_token_seconds.Observe(to_ms(clock_.now() - a.arrived) / 1000);
  const TextOptions& options = a.request.text;
  if (tokenizer_.is_end_of_generation(token)) {
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

// The sequences of a failed batch are in an unknown state: they are cleared. Out of cells (possible in a sliding
// window's smaller cache, which the cell map does not count) the requests start over; a failure of the backend ends
// them.
void Scheduler::end_with_failed_batch(engine::DecodeStatus status) {
  std::vector<Slot*> hit;
  for (Slot& s : slots_) {
    const bool in_batch = std::any_of(batch_.begin(), batch_.end(), [&](const auto& i) { return i.seq == s.seq; });
    if (in_batch) hit.push_back(&s);
  }
  obs::log_error("batch failed", "status={} tokens={} requests={}",
                 status == engine::DecodeStatus::no_cells ? "no_cells" : "failed", batch_.size(), hit.size());
  const bool retry = status == engine::DecodeStatus::no_cells && (hit.size() > 1 || evict_one(nullptr));
  for (Slot* s : hit) {
    if (retry) {
      pause(*s);
    } else {
      end_early(release(*s), {ErrorKind::internal, "the model could not evaluate the batch", {}});
    }
    sequences_.clear(s->seq);
  }
}

}  // namespace coppice::sched
