#include "api/report_json.h"

#include "api/json_text.h"
#include "base/clock.h"
#include "base/json.h"

namespace coppice::api {
namespace {

double per_token_ms(double ms, TokenPos n) { return n > 0 ? ms / n : 0.0; }
double per_second(double ms, TokenPos n) { return ms > 0 ? n * 1000.0 / ms : 0.0; }

}  // namespace

Json timings_json(const sched::Report& report) {
  const double prompt_ms = to_ms(report.prefill), predicted_ms = to_ms(report.decode);
  return {
      {"cache_n", report.reused()},
      {"prompt_n", report.computed},
      {"prompt_ms", prompt_ms},
      {"prompt_per_token_ms", per_token_ms(prompt_ms, report.computed)},
      {"prompt_per_second", per_second(prompt_ms, report.computed)},
      {"predicted_n", report.predicted},
      {"predicted_ms", predicted_ms},
      {"predicted_per_token_ms", per_token_ms(predicted_ms, report.predicted)},
      {"predicted_per_second", per_second(predicted_ms, report.predicted)},
  };
}

Json coppice_json(const sched::Report& report, const SessionFacts& session) {
  const bool diverged = report.diverged_at >= 0;
  return {
      {"session", text_or_null(session.session)},
      {"session_rule", text_or_null(session.rule)},
      {"parent_session", text_or_null(session.parent_session)},
      {"continued", session.continued},
      {"slot", report.slot.value},
      {"source", kv::name(report.source)},
      {"reused", report.reused()},
      {"computed", report.computed},
      {"reason", text_or_null(kv::name(report.reason))},
      {"diverged_at", diverged ? Json(report.diverged_at) : Json(nullptr)},
      {"diverged_text", diverged ? Json(report.diverged_text) : Json(nullptr)},
      {"reused_by_source",
       {{"slot", report.reused_slot},
        {"donor", report.reused_donor},
        {"pool", report.reused_pool},
        {"host", report.reused_host},
        {"disk", report.reused_disk}}},
      {"queue_ms", to_ms(report.queued)},
      {"restore_ms", to_ms(report.restore)},
      {"prefill_ms", to_ms(report.prefill)},
      {"decode_ms", to_ms(report.decode)},
      {"pauses", report.pauses},
      {"coalesced", report.coalesced},
      {"pinned", report.pinned},
      {"pins_refused", report.pins_refused},
      {"prepared", report.prepared},
  };
}

void Usage::add_first_answer(const sched::Report& report) {
  prompt_tokens += report.prompt_tokens;
  cached_tokens += report.reused();
  completion_tokens += report.predicted;
}

void Usage::add_further_answer(const sched::Report& report) { completion_tokens += report.predicted; }

Json Usage::to_json() const {
  return {
      {"prompt_tokens", prompt_tokens},
      {"completion_tokens", completion_tokens},
      {"total_tokens", prompt_tokens + completion_tokens},
      {"prompt_tokens_details", {{"cached_tokens", cached_tokens}}},
      {"cache_read_input_tokens", cached_tokens},  // where Roo Code looks
  };
}

}  // namespace coppice::api
