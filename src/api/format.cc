#include "api/format.h"

#include "api/errors.h"
#include "api/json_text.h"
#include "base/json.h"

namespace coppice::api {

std::string Format::on_silence() { return std::string(kSsePing); }

HttpResponse Format::refusal(const Error& error) const { return error_response(error); }

Json progress_json(const sched::Progress& progress) {
  return {{"total", progress.total},
          {"cache", progress.reused},
          {"processed", progress.processed},
          {"time_ms", to_ms(progress.elapsed)}};
}

void add_report(Json& object, const Answer& answer, const FormatFacts& facts) {
  object["timings"] = timings_json(answer.report);
  object["coppice"] = coppice_json(answer.report, facts.session);
}

void add_reports(Json& response, const std::vector<Answer>& answers, const FormatFacts& facts) {
  response["usage"] = usage_of(answers).to_json();
  add_report(response, answers.front(), facts);
  if (answers.size() == 1) return;
  if (auto choices = response.find("choices"); choices != response.end()) {
    for (std::size_t i = 0; i < choices->size(); ++i) add_report((*choices)[i], answers[i], facts);
  }
}

Usage usage_of(const std::vector<Answer>& answers) {
  Usage usage;
  for (const Answer& answer : answers) {
    if (answer.first_of_prompt) {
      usage.add_first_answer(answer.report);
    } else {
      usage.add_further_answer(answer.report);
    }
  }
  return usage;
}

}  // namespace coppice::api
