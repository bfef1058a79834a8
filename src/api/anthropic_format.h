// Anthropic Messages, for POST /v1/messages.
//
// A stream is: message_start and a ping when the prompt's evaluation begins, as then it is known how much of it was
// cached; the content blocks, one after the other; message_delta with the stop_reason, all counts and our own report;
// message_stop.
//
//   block open | reasoning                 | content              | a call begins         | more of a call | end
//   -----------+---------------------------+----------------------+-----------------------+----------------+-------
//   none       | -> thinking               | -> text              | -> tool_use           | a delta        |
//   thinking   | a delta                   | closed, -> text      | closed, -> tool_use   | a delta        | closed
//   text       | closed, -> thinking       | a delta              | closed, -> tool_use   | a delta        | closed
//   tool_use   | closed, -> thinking       | closed, -> text      | closed, -> tool_use   | a delta        | closed
//
// A thinking block is closed with a signature: the message's id, by which the turn is known when it comes back.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/format.h"
#include "base/json.h"
#include "chat/chat.h"

namespace coppice::api {

class AnthropicFormat final : public Format {
 public:
  // `diagnostics` goes into the message if it is there. `templates` must outlive the format.
  AnthropicFormat(FormatFacts facts, const chat::Templates& templates, const chat::Prompt& prompt, bool cache_prompt,
                  std::optional<Json> diagnostics);

  void on_confirmed(const chat::Prompt& prompt, bool continued) override;
  std::string on_progress(const Answer& answer, const sched::Progress& progress) override;
  std::string on_delta(const Answer& answer, const sched::TextDelta& delta) override;
  std::string on_finished(const Answer& answer, const sched::TextDelta& tail) override;
  std::string on_end(const std::vector<Answer>& answers) override;
  std::string on_error(const Error& error) override;
  std::string on_silence() override;
  Json whole(const std::vector<Answer>& answers) override;
  HttpResponse refusal(const Error& error) const override;
  const chat::Message* message(const Answer&) override { return &parser_->message(); }
  std::vector<std::string> minted_ids(const Answer& answer) override;

 private:
  enum class Block : std::uint8_t { none, thinking, text, tool_use };

  Json usage(TokenPos prompt, TokenPos reused, TokenPos predicted) const;
  Json usage(const sched::Report& report) const;
  Json message_json(Json usage) const;
  Json ending(const Answer& answer) const;
  std::string start_once(TokenPos prompt, TokenPos reused);
  std::string feed(const sched::TextDelta& delta, bool last);
  std::string add(const chat::MessageDelta& piece);
  std::string add_call(const chat::MessageDelta& piece);
  std::string open(Block block, Json content);
  std::string close();
  std::string block_delta(std::size_t index, Json delta) const;

  FormatFacts facts_;
  const chat::Templates& templates_;
  std::unique_ptr<chat::OutputParser> parser_;
  const bool cache_prompt_;
  const std::optional<Json> diagnostics_;
  bool started_ = false;
  Block block_ = Block::none;
  std::size_t n_blocks_ = 0;  // begun; the open one is the last
  std::vector<std::size_t> block_of_call_;
};

}  // namespace coppice::api
