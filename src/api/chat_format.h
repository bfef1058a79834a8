// OpenAI Chat Completions, for POST /v1/chat/completions.
//
// A stream is, per answer: a delta with the role; deltas with reasoning_content, content or tool_calls; an empty delta
// with the finish_reason, timings and coppice. Then, if asked for, one chunk with usage and no choices; then [DONE].
#pragma once

#include <memory>
#include <vector>

#include "api/format.h"
#include "base/json.h"
#include "chat/chat.h"

namespace coppice::api {

class ChatFormat final : public Format {
 public:
  // `templates` must outlive the format.
  ChatFormat(FormatFacts facts, const chat::Templates& templates, chat::Prompt prompt);

  void on_confirmed(const chat::Prompt& prompt, bool continued) override;
  std::string on_progress(const Answer& answer, const sched::Progress& progress) override;
  std::string on_delta(const Answer& answer, const sched::TextDelta& delta) override;
  std::string on_finished(const Answer& answer, const sched::TextDelta& tail) override;
  std::string on_end(const std::vector<Answer>& answers) override;
  std::string on_error(const Error& error) override;
  Json whole(const std::vector<Answer>& answers) override;
  const chat::Message* message(const Answer& answer) override { return &state(answer).parser->message(); }
  std::vector<std::string> minted_ids(const Answer& answer) override;

 private:
  struct State {
    std::unique_ptr<chat::OutputParser> parser;
    bool role_sent = false;
    // Tokens whose text the parser still holds; their log-probabilities go out with its next piece.
    std::vector<sched::TokenText> held_probs;
  };
  State& state(const Answer& answer);
  Json head(const char* object) const;
  Json chunk(const Answer& answer, Json delta, const char* finish_reason);
  std::string role_once(const Answer& answer);
  std::string feed(const Answer& answer, const sched::TextDelta& delta, bool last);

  FormatFacts facts_;
  const chat::Templates& templates_;
  chat::Prompt prompt_;
  std::vector<State> states_;  // by answer
};

}  // namespace coppice::api
