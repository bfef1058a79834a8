#include "api/completions_format.h"

#include "api/errors.h"
#include "api/json_text.h"
#include "base/json.h"

namespace coppice::api {
namespace {

const char* finish_reason(sched::StopKind stop) { return stop == sched::StopKind::length ? "length" : "stop"; }

}  // namespace

Json CompletionsFormat::head() const {
  return {{"id", facts_.id},       {"object", "text_completion"},        {"created", facts_.created_unix_s},
          {"model", facts_.model}, {"system_fingerprint", facts_.build}, {"choices", Json::array()}};
}

Json CompletionsFormat::choice(std::size_t index, const sched::TextDelta& output, std::size_t& text_offset) const {
  Json logprobs = nullptr;
  if (!output.probs.empty()) logprobs = completion_logprobs(output.probs, facts_.probs(), text_offset);
  return {{"index", index}, {"text", output.text}, {"logprobs", std::move(logprobs)}, {"finish_reason", nullptr}};
}

std::size_t& CompletionsFormat::text_offset(const Answer& answer) {
  if (text_offsets_.size() <= answer.index) text_offsets_.resize(answer.index + 1);
  return text_offsets_[answer.index];
}

std::string CompletionsFormat::on_progress(const Answer& answer, const sched::Progress& progress) {
  Json chunk = head();
  chunk["choices"].push_back(choice(answer.index, {}, text_offset(answer)));
  chunk["prompt_progress"] = progress_json(progress);
  return to_sse(chunk);
}

std::string CompletionsFormat::on_delta(const Answer& answer, const sched::TextDelta& delta) {
  if (delta.text.empty() && delta.probs.empty()) return {};
  Json chunk = head();
  chunk["choices"].push_back(choice(answer.index, delta, text_offset(answer)));
  return to_sse(chunk);
}

std::string CompletionsFormat::on_finished(const Answer& answer, const sched::TextDelta& tail) {
  Json chunk = head();
  Json& last = chunk["choices"].emplace_back(choice(answer.index, tail, text_offset(answer)));
  last["finish_reason"] = finish_reason(answer.stop);
  add_report(chunk, answer, facts_);
  return to_sse(chunk);
}

std::string CompletionsFormat::on_end(const std::vector<Answer>& answers) {
  std::string out;
  if (facts_.generation.include_usage) {
    Json chunk = head();
    add_reports(chunk, answers, facts_);
    out = to_sse(chunk);
  }
  return out.append(kSseDone);
}

std::string CompletionsFormat::on_error(const Error& error) { return to_sse(error_json(error)).append(kSseDone); }

Json CompletionsFormat::whole(const std::vector<Answer>& answers) {
  Json response = head();
  for (const Answer& answer : answers) {
    Json& one = response["choices"].emplace_back(choice(answer.index, answer.output, text_offset(answer)));
    one["finish_reason"] = finish_reason(answer.stop);
  }
  add_reports(response, answers, facts_);
  return response;
}

}  // namespace coppice::api
