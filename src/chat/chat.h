// Chat through the model's own template: messages -> prompt text and output constraints, output text -> parsed message.
// The implementation is the only user of llama-common's chat code. Immutable after construction, safe from any thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json_fwd.h"
#include "engine/sampler.h"

namespace coppice::chat {

struct ToolCall {
  std::string id, name, arguments;  // arguments: JSON text, maybe incomplete while streaming
  friend bool operator==(const ToolCall&, const ToolCall&) = default;
};

struct Message {
  std::string content, reasoning;
  std::vector<ToolCall> tool_calls;
};

// What one more piece of output text added to the message.
struct MessageDelta {
  std::string content, reasoning;
  std::optional<std::size_t> tool_index;  // which call the next two belong to
  std::string tool_id, tool_name;         // set once, when the call begins
  std::string tool_arguments;             // more of its arguments
};

// Parses one answer as it grows. Not thread-safe; one per answer.
class OutputParser {
 public:
  virtual ~OutputParser() = default;
  // `text` is what was generated since the last call. Text that does not parse (yet) is never an error: while the
  // answer grows it is held back, and at the end it is content.
  virtual std::vector<MessageDelta> feed(std::string_view text, bool last) = 0;
  virtual const Message& message() const = 0;  // all so far; ids of tool calls are unique and stable
  // Prompt::one_call, and what follows the call has begun: nothing more will come out, whatever is fed.
  virtual bool has_enough() const = 0;
};

struct Prompt {
  std::string text;                // to be tokenized with special tokens parsed, and added where the vocabulary says so
  std::vector<std::string> stops;  // the template's own
  engine::ChatConstraint constraint;
  bool one_call = false;                     // the client takes at most one tool call
  std::shared_ptr<const void> parser_state;  // for make_parser
};

// What becomes of system messages after the first turn, as a probe at start-up found; chat/late_system.h.
struct LateSystemFacts {
  std::string native;    // what the template does with them: "in_place", "refused", "lost_or_moved"
  std::string rendered;  // as what they are rendered: "system", "user", "user_merged"
  bool in_place = true;  // false: no rendering keeps them where they are
};

class Templates {
 public:
  virtual ~Templates() = default;

  // `body` is a Chat Completions request: messages, tools, tool_choice, parallel_tool_calls, response_format,
  // json_schema, grammar, reasoning_format, reasoning_effort, chat_template_kwargs, add_generation_prompt,
  // continue_final_message. Errors: invalid_request naming the field (also when the template itself refuses the
  // messages).
  virtual Result<Prompt> render(const Json& body) const = 0;

  // The text of render() alone, as far as a probe at start-up can tell, and without the work on everything else. Only
  // for what is checked against render() afterwards.
  virtual Result<std::string> render_text(const Json& body) const {
    auto prompt = render(body);
    if (!prompt) return std::unexpected(prompt.error());
    return std::move(prompt->text);
  }

  virtual std::unique_ptr<OutputParser> make_parser(const Prompt& prompt) const = 0;

  virtual std::string source() const = 0;  // the template's text, for /props
  virtual Json capabilities() const = 0;   // what the template supports, for /props
  virtual LateSystemFacts late_system() const = 0;
};

}  // namespace coppice::chat
