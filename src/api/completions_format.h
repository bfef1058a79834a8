// OpenAI's older text completions, for POST /v1/completions.
#pragma once

#include <vector>

#include "api/format.h"

namespace coppice::api {

class CompletionsFormat final : public Format {
 public:
  explicit CompletionsFormat(FormatFacts facts) : facts_(std::move(facts)) {}

  std::string on_progress(const Answer& answer, const sched::Progress& progress) override;
  std::string on_delta(const Answer& answer, const sched::TextDelta& delta) override;
  std::string on_finished(const Answer& answer, const sched::TextDelta& tail) override;
  std::string on_end(const std::vector<Answer>& answers) override;
  std::string on_error(const Error& error) override;
  Json whole(const std::vector<Answer>& answers) override;

 private:
  Json head() const;  // a response without choices
  Json choice(std::size_t index, const sched::TextDelta& output, std::size_t& text_offset) const;
  std::size_t& text_offset(const Answer& answer);

  FormatFacts facts_;
  std::vector<std::size_t> text_offsets_;  // by answer: bytes whose log-probabilities were sent
};

}  // namespace coppice::api
