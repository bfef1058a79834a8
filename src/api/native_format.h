// llama-server's own shapes, for POST /completion.
#pragma once

#include <vector>

#include "api/format.h"
#include "base/json.h"

namespace coppice::api {

class NativeFormat final : public Format {
 public:
  explicit NativeFormat(FormatFacts facts) : facts_(std::move(facts)) {}

  void on_accepted(const Json& body, const engine::SamplerFactory& samplers) override;
  std::string on_progress(const Answer& answer, const sched::Progress& progress) override;
  std::string on_delta(const Answer& answer, const sched::TextDelta& delta) override;
  std::string on_finished(const Answer& answer, const sched::TextDelta& tail) override;
  std::string on_end(const std::vector<Answer>& answers) override;
  std::string on_error(const Error& error) override;
  Json whole(const std::vector<Answer>& answers) override;  // one object, or a list with several answers

 private:
  struct Sent {
    std::size_t n_tokens = 0;
    bool has_new_line = false;
  };
  Sent& sent(const Answer& answer);
  Json partial(const Answer& answer, const sched::TextDelta& delta);
  Json last(const Answer& answer, const sched::TextDelta& output, bool has_new_line) const;
  Json selected_fields(const Json& response) const;

  FormatFacts facts_;
  Json settings_;           // "generation_settings"
  std::vector<Sent> sent_;  // by answer
};

}  // namespace coppice::api
