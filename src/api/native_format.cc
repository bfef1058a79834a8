#include "api/native_format.h"

#include "api/errors.h"
#include "api/json_text.h"

namespace coppice::api {
namespace {

const char* stop_type(sched::StopKind stop) {
  switch (stop) {
    case sched::StopKind::end_of_generation: return "eos";
    case sched::StopKind::stop_word:
    case sched::StopKind::enough: return "word";
    case sched::StopKind::length: return "limit";
  }
  return "none";
}

}  // namespace

void NativeFormat::on_accepted(const Json& body, const engine::SamplerFactory& samplers) {
  const GenerationFields& generation = facts_.generation;
  settings_ = samplers.settings(body);
  settings_["n_predict"] = generation.n_predict;
  settings_["max_tokens"] = generation.n_predict;
  settings_["stop"] = generation.stop;
  settings_["stream"] = generation.stream;
  settings_["n_probs"] = generation.n_alternatives;
  settings_["post_sampling_probs"] = generation.post_sampling_probs;
}

NativeFormat::Sent& NativeFormat::sent(const Answer& answer) {
  if (sent_.size() <= answer.index) sent_.resize(answer.index + 1);
  return sent_[answer.index];
}

// Which slot runs a request is known when it ends, so "id_slot" comes with the last message.
Json NativeFormat::partial(const Answer& answer, const sched::TextDelta& delta) {
  Sent& so_far = sent(answer);
  so_far.n_tokens += delta.tokens.size();
  so_far.has_new_line |= delta.text.find('\n') != std::string::npos;
  Json out = {{"index", answer.index},
              {"content", delta.text},
              {"tokens", delta.tokens},
              {"stop", false},
              {"tokens_predicted", so_far.n_tokens},
              {"tokens_evaluated", answer.prompt->size()}};
  if (!delta.probs.empty()) out["completion_probabilities"] = native_probs(delta.probs, facts_.probs());
  return out;
}

std::string NativeFormat::on_progress(const Answer& answer, const sched::Progress& progress) {
  Json out = partial(answer, {});
  out["prompt_progress"] = progress_json(progress);
  return to_sse(out);
}

std::string NativeFormat::on_delta(const Answer& answer, const sched::TextDelta& delta) {
  if (delta.text.empty() && delta.tokens.empty() && delta.probs.empty()) return {};
  return to_sse(partial(answer, delta));
}

std::string NativeFormat::on_finished(const Answer& answer, const sched::TextDelta& tail) {
  const bool has_new_line = sent(answer).has_new_line || tail.text.find('\n') != std::string::npos;
  return to_sse(last(answer, tail, has_new_line));
}

std::string NativeFormat::on_end(const std::vector<Answer>&) { return {}; }  // "stop": true was the end

std::string NativeFormat::on_error(const Error& error) { return to_sse(error_json(error)); }

Json NativeFormat::last(const Answer& answer, const sched::TextDelta& output, bool has_new_line) const {
  const sched::Report& report = answer.report;
  const bool keep_tokens = facts_.generation.return_tokens || facts_.generation.stream;
  const bool full = report.prompt_tokens + report.predicted >= facts_.n_ctx;
  Json out = {
      {"index", answer.index},
      {"content", output.text},
      {"tokens", keep_tokens ? Json(output.tokens) : Json::array()},
      {"id_slot", report.slot.value},
      {"stop", true},
      {"model", facts_.model},
      {"tokens_predicted", report.predicted},
      {"tokens_evaluated", report.prompt_tokens},
      {"generation_settings", settings_},
      {"prompt", facts_.tokenizer.text(*answer.prompt, true)},
      {"has_new_line", has_new_line},
      {"truncated", answer.stop == sched::StopKind::length && full},
      {"stop_type", stop_type(answer.stop)},
      {"stopping_word", answer.stop_word},
      {"tokens_cached", report.reused()},
  };
  add_report(out, answer, facts_);
  if (!output.probs.empty()) out["completion_probabilities"] = native_probs(output.probs, facts_.probs());
  return selected_fields(out);
}

// "a/b" takes field b of object a and keeps the path as its name, as llama-server does.
Json NativeFormat::selected_fields(const Json& response) const {
  if (facts_.generation.response_fields.empty()) return response;
  Json out = Json::object();
  for (const std::string& path : facts_.generation.response_fields) {
    const Json* at = &response;
    for (std::size_t begin = 0; at != nullptr && begin <= path.size();) {
      const std::size_t end = std::min(path.find('/', begin), path.size());
      const auto it = at->is_object() ? at->find(path.substr(begin, end - begin)) : at->end();
      at = it == at->end() ? nullptr : &*it;
      begin = end + 1;
    }
    if (at != nullptr) out[path] = *at;
  }
  return out;
}

Json NativeFormat::whole(const std::vector<Answer>& answers) {
  Json out = Json::array();
  for (const Answer& answer : answers) {
    out.push_back(last(answer, answer.output, answer.output.text.find('\n') != std::string::npos));
  }
  if (out.size() == 1) return Json(std::move(out[0]));
  return out;
}

}  // namespace coppice::api
