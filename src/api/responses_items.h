// The items of a Responses conversation as Chat Completions messages.
//
// One answer of a model comes as several items (reasoning, text, calls); a chat template must see the one message that
// it was, so neighbours become one message again:
//
//   item                  | open message of the assistant           | none open
//   ----------------------+-----------------------------------------+--------------------------
//   assistant's text, call | added to it                             | begins one
//   reasoning             | added; ends it first if it has text or  | begins one
//                         | calls, as a model thinks before it acts |
//   anything else         | ends it                                 | -
//   ignored item          | -                                       | -
#pragma once

#include <memory>
#include <string>

#include "api/responses_tools.h"
#include "base/error.h"
#include "base/json_fwd.h"

namespace coppice::api {

class ResponsesMessages {
 public:
  // `names` must outlive this.
  explicit ResponsesMessages(const ToolNames& names);
  ~ResponsesMessages();

  void add_instructions(const std::string& text);

  // Errors: invalid_request naming the field, which begins with `path`. Items of kinds that are unknown, or run by a
  // provider (searches, ...), are left out.
  Result<void> add(const Json& item, const std::string& path);

  Json take();

 private:
  struct Answer;
  Result<void> add_message(const Json& item, const std::string& path);
  Result<void> add_reasoning(const Json& item, const std::string& path);
  Result<void> add_call(const Json& item, const std::string& path, bool custom);
  Result<void> add_call_output(const Json& item, const std::string& path);
  Answer& answer();
  void end_answer();

  const ToolNames& names_;
  std::unique_ptr<Answer> answer_;  // the message that is open, or null
  std::unique_ptr<Json> messages_;
};

// The text of a string, or of a list of text parts, joined by line breaks as chat does. Null is no text. Errors:
// invalid_request naming the part, for images and files too.
Result<std::string> read_item_text(const Json* content, const std::string& path);

}  // namespace coppice::api
