// OpenAI Responses, for POST /v1/responses.
//
// A stream is: response.created and response.in_progress at once; the events of the items (responses_output.h); then
// response.completed, response.incomplete or response.failed. While it is silent response.in_progress comes again, with
// a number of its own: clients wait for events, not for comments.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "api/format.h"
#include "api/responses_output.h"
#include "base/json.h"
#include "chat/chat.h"

namespace coppice::api {

// What a response says of its request, whatever the answer. REQUIRES: read_responses_request() took `body`.
Json describe_request(const Json& body, const FormatFacts& facts);

class ResponsesFormat final : public Format {
 public:
  // Called once, when the answer has ended and before the client is told: may add to the response, and keep it.
  using OnEnded = std::function<void(Json& response, const sched::Report& report)>;

  // `described` is what describe_request() gave. `templates` must outlive the format.
  ResponsesFormat(FormatFacts facts, const chat::Templates& templates, const chat::Prompt& prompt, ToolNames tools,
                  Json described, OnEnded on_ended);

  void on_confirmed(const chat::Prompt& prompt, bool continued) override;
  std::string on_begin() override;
  std::string on_silence() override;
  std::string on_progress(const Answer& answer, const sched::Progress& progress) override;
  std::string on_delta(const Answer& answer, const sched::TextDelta& delta) override;
  std::string on_finished(const Answer& answer, const sched::TextDelta& tail) override;
  std::string on_end(const std::vector<Answer>& answers) override;
  std::string on_error(const Error& error) override;
  Json whole(const std::vector<Answer>& answers) override;
  const chat::Message* message(const Answer&) override { return &parser_->message(); }
  std::vector<std::string> minted_ids(const Answer& answer) override;

 private:
  std::string feed(std::string_view text, bool last);
  std::string told(const char* type, Json response);
  Json ended(const Answer& answer);
  Json usage(const Answer& answer) const;

  FormatFacts facts_;
  const chat::Templates& templates_;
  std::unique_ptr<chat::OutputParser> parser_;
  ResponsesOutput output_;
  Json response_;  // as it is before the answer
  const OnEnded on_ended_;
};

}  // namespace coppice::api
