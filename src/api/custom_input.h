// The free text of a custom tool's call, read out of the call's arguments while they are being generated. The arguments
// are {"input": "the text"}, see responses_tools.h.
//
//   state   | holds                     | the next byte
//   --------+---------------------------+------------------------------------------------------------------
//   opening | a part of `{"input": "`   | its next byte -> opening, or text at its end; another -> other
//   text    | the text so far           | `"` -> ended; what is no JSON string -> ended; else -> text
//   ended   | the text                  | ignored
//   other   | nothing                   | ignored: the arguments have another form and are readable at their end only
//
// Not thread-safe; one per call.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace coppice::api {

class CustomInput {
 public:
  // More of the arguments; returns what it adds to the text. An escape sequence is held back until it is whole.
  std::string feed(std::string_view arguments);

  // Whether the arguments began as they should, so that text() is the input, as far as it was written.
  bool readable() const { return state_ == State::text || state_ == State::ended; }
  const std::string& text() const { return text_; }

 private:
  enum class State : std::uint8_t { opening, text, ended, other };

  void open(char c);
  void add(char c);
  void add_to_escape(char c);

  State state_ = State::opening;
  std::size_t opened_ = 0;  // bytes of the opening that were seen
  std::string escape_;      // from its backslash on; empty outside of one
  std::string text_;
};

}  // namespace coppice::api
