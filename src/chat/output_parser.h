// Parses one answer as it grows, on llama-common's parser, and never takes back what it has given out.
//
// That parser looks at the whole text each time, so it is called on a growing step: see `due()`. What it returns for a
// longer text is not always an extension of what it returned before; only extensions are passed on.
// Invariant: message() is the concatenation of all deltas returned so far. Not thread-safe; one per answer.
#pragma once

#include <chat.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "chat/chat.h"

namespace coppice::chat {

// What a rendered prompt says of the output to come. Shared by the parsers of its answers, never changed.
struct ParserState {
  common_chat_parser_params params;
  std::vector<std::string> tool_names;         // those the model may call
  bool model_gives_ids = false;                // an id may stand in the call, maybe behind its arguments
  std::vector<std::string> thinking_end_tags;  // for output that does not parse at all
  std::function<std::string()> make_call_id;
  bool one_call = false;  // a second call is not given out: the grammar allows it, the client does not
};

class LlamaOutputParser final : public OutputParser {
 public:
  explicit LlamaOutputParser(std::shared_ptr<const ParserState> state);

  // REQUIRES: not called again after `last`.
  std::vector<MessageDelta> feed(std::string_view text, bool last) override;
  const Message& message() const override { return message_; }
  bool has_enough() const override { return has_enough_; }

 private:
  bool due(bool last) const;
  void parse(bool last, std::vector<MessageDelta>& out);
  void advance(const common_chat_msg& now, bool last, std::vector<MessageDelta>& out);
  void advance_calls(const common_chat_msg& now, bool last, std::vector<MessageDelta>& out);
  bool call_is_known(const common_chat_msg& now, std::size_t index, bool last) const;
  std::string new_call_id(const std::string& given) const;
  std::size_t unsent_begin() const;
  bool has_whole_call() const;
  void give_up(std::vector<MessageDelta>& out);
  void track_nesting(std::string_view text);

  std::shared_ptr<const ParserState> state_;
  std::string text_;                                     // all output so far
  std::size_t parsed_bytes_ = 0;                         // of text_, at the last parse
  std::size_t emitted_bytes_ = 0;                        // of text_, at the last parse that gave something out
  int nesting_ = 0;                                      // open brackets in text_
  bool has_enough_ = false;                              // a second call has begun, and one was asked for
  bool too_deep_ = false;                                // text_ nests too deeply to be parsed
  std::string prefilled_content_, prefilled_reasoning_;  // part of the prompt; the parser reports it too
  Message message_;
};

// Random letters and digits. Thread-safe.
std::string random_id(std::size_t length);

}  // namespace coppice::chat
