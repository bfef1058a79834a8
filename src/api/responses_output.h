// The output items of one Responses answer, and the events that tell of them while they grow.
//
//   state    | text of its kind | text of another kind, a call's name | end
//   ---------+------------------+-------------------------------------+---------------
//   closed   | -> open          | -> open                             | -
//   open     | a delta          | done events; -> open with the other | done events; -> closed
//
// One item is open at a time. Events of an item: output_item.added; for text and reasoning content_part.added; deltas;
// the kind's own done event; content_part.done; output_item.done. Reasoning is told a second time as a summary, for
// clients that ask for one: some show and send back nothing else.
// Invariant: sequence numbers rise by one from 0; items() is what the events told. Used by one exchange.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "api/custom_input.h"
#include "api/responses_tools.h"
#include "base/json_fwd.h"
#include "chat/chat.h"

namespace coppice::api {

class ResponsesOutput {
 public:
  // Item ids are "msg_" (rs_, fc_, ctc_), `stem`, "_" and the item's index, so that an item's id tells its response.
  ResponsesOutput(std::string stem, ToolNames tools, bool with_summaries);
  ~ResponsesOutput();

  // One server-sent event of this type with `fields` and the next sequence number.
  std::string event(const char* type, Json fields);

  // Each returns the events to send.
  std::string feed(const chat::MessageDelta& delta);
  std::string end(bool complete);  // the item that is open, if any, is done; `complete`: it was not cut short

  const Json& items() const { return *items_; }

 private:
  enum class Kind : std::uint8_t { none, message, reasoning, function, custom };

  std::string open(Kind kind, Json item, const char* id_prefix);
  std::string open_part(const char* type);
  std::string open_call(const chat::MessageDelta& delta);
  std::string add_text(Kind kind, const std::string& text);
  std::string add_arguments(const chat::MessageDelta& delta);
  std::string delta(const char* type, const std::string& text);
  std::string close_message(Json& item);
  std::string close_reasoning(Json& item);
  std::string close_function(Json& item);
  std::string close_custom(Json& item);
  Json place() const;          // which item an event is of
  Json summary_place() const;  // which part of its summary

  const std::string stem_;
  const ToolNames tools_;
  const bool with_summaries_;
  std::int64_t sequence_number_ = 0;
  std::unique_ptr<Json> items_;  // those that are done
  Kind kind_ = Kind::none;       // of the item that is open
  std::unique_ptr<Json> item_;   // as it was when it was added
  std::string text_;             // its text, or the arguments of its call
  CustomInput custom_input_;     // of the custom call that is open
  std::size_t call_index_ = 0;   // of the call that is open
};

}  // namespace coppice::api
