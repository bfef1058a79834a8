// The message of a streamed chat answer, put together as clients do: what they send back in the next request.
//
// Threading: none.
#pragma once

#include <nlohmann/json.hpp>

namespace coppice::bench {

using Json = nlohmann::json;

class ChatMessage {
 public:
  // An event of the stream. Anything that is no delta of the first choice changes nothing.
  void read(const Json& event);

  // {"role","content"}, with "reasoning_content" and "tool_calls" if there were any; null without any delta. A content
  // that the server never sent is null beside tool calls, as OpenAI's API has it, else empty.
  const Json& json() const { return message_; }

 private:
  void read_call(const Json& piece);

  Json message_;
};

}  // namespace coppice::bench
