#include "chat/output_parser.h"

#include <algorithm>
#include <cassert>
#include <exception>
#include <mutex>
#include <random>
#include <utility>

#include "base/json.h"
#include "base/utf8.h"

namespace coppice::chat {
namespace {

constexpr std::string_view blanks = " \t\r\n";

// The parser recurses once per level, so output that opens brackets without end must not reach it (measured: 3,000
// levels fit into a stack of 8 MiB, 10,000 do not). Brackets in strings count too, as nothing here knows what is a
// string.
constexpr int nesting_max = 1000;

std::string_view without_trailing_blanks(std::string_view text) {
  const auto end = text.find_last_not_of(blanks);
  return text.substr(0, end == std::string_view::npos ? 0 : end + 1);
}

// What `now` adds to `sent`; nothing when it is not an extension of it.
std::string_view growth(std::string_view sent, std::string_view now) {
  return now.starts_with(sent) ? now.substr(sent.size()) : std::string_view{};
}

}  // namespace

std::string random_id(std::size_t length) {
  static constexpr std::string_view alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  static std::mutex mutex;  // guards the generator
  static std::mt19937_64 generator{[] {
    std::random_device device;
    std::seed_seq seed{device(), device(), device(), device(), device(), device(), device(), device()};
    return std::mt19937_64(seed);
  }()};
  const std::lock_guard lock(mutex);
  std::uniform_int_distribution<std::size_t> pick(0, alphabet.size() - 1);
  std::string id;
  while (id.size() < length) id += alphabet[pick(generator)];
  return id;
}

LlamaOutputParser::LlamaOutputParser(std::shared_ptr<const ParserState> state) : state_(std::move(state)) {
  if (!state_->params.is_continuation) return;
  try {
    const common_chat_msg prefilled = common_chat_parse("", /*is_partial=*/true, state_->params);
    prefilled_content_ = prefilled.content;
    prefilled_reasoning_ = prefilled.reasoning_content;
  } catch (const std::exception&) {
    // A prefill that does not parse by itself leaves nothing to subtract.
  }
}

std::vector<MessageDelta> LlamaOutputParser::feed(std::string_view text, bool last) {
  std::vector<MessageDelta> out;
  if (has_enough_) return out;
  text_ += text;
  track_nesting(text);
  // The end may have cut a second call in two; as a whole the text would not parse, but the first call is there.
  if (last && state_->one_call) parse(false, out);
  if (due(last) && !has_enough_) parse(last, out);
  return out;
}

// Parsing each time would cost the square of the length. With steps that grow with the text the total stays near
// linear; a step of 1/1024 is one token up to 4 KiB and a few beyond, so streaming stays smooth.
bool LlamaOutputParser::due(bool last) const { return last || text_.size() - parsed_bytes_ > text_.size() / 1024; }

void LlamaOutputParser::track_nesting(std::string_view text) {
  for (const char c : text) {
    if (c == '{' || c == '[') ++nesting_;
    if ((c == '}' || c == ']') && nesting_ > 0) --nesting_;
    too_deep_ = too_deep_ || nesting_ > nesting_max;
  }
}

void LlamaOutputParser::parse(bool last, std::vector<MessageDelta>& out) {
  if (too_deep_) {
    if (last) give_up(out);
    return;
  }
  parsed_bytes_ = text_.size();
  const std::size_t held_back = last ? 0 : incomplete_utf8_tail(text_);
  try {
    const auto now = common_chat_parse(text_.substr(0, text_.size() - held_back), !last, state_->params);
    advance(now, last, out);
  } catch (const std::exception&) {
    if (last) give_up(out);  // else: held back, more text may make it parse
  }
  if (!out.empty()) emitted_bytes_ = without_trailing_blanks(text_).size();
}

void LlamaOutputParser::advance(const common_chat_msg& now, bool last, std::vector<MessageDelta>& out) {
  // Blanks at the end may turn out to belong to a marker that follows, and then they are not part of the text. Once the
  // next part of the message has begun they are settled.
  const auto grow = [&](std::string_view whole, bool ended, std::string& sent, std::string MessageDelta::* field) {
    const std::string_view added = growth(sent, ended ? whole : without_trailing_blanks(whole));
    if (added.empty()) return;
    out.emplace_back().*field = added;
    sent += added;
  };
  const bool calls = last || !now.tool_calls.empty();
  const std::string_view content = growth(prefilled_content_, now.content);
  const std::string_view reasoning = growth(prefilled_reasoning_, now.reasoning_content);
  const bool answers = calls || !without_trailing_blanks(content).empty();
  grow(reasoning, answers, message_.reasoning, &MessageDelta::reasoning);
  grow(content, calls, message_.content, &MessageDelta::content);
  advance_calls(now, last, out);
}

void LlamaOutputParser::advance_calls(const common_chat_msg& now, bool last, std::vector<MessageDelta>& out) {
  for (std::size_t i = 0; i < now.tool_calls.size(); ++i) {
    if (state_->one_call && i > 0) {
      has_enough_ = true;
      return;
    }
    const common_chat_tool_call& call = now.tool_calls[i];
    const bool begins = i == message_.tool_calls.size();
    if (begins) {
      if (!call_is_known(now, i, last)) return;
      message_.tool_calls.push_back({.id = new_call_id(call.id), .name = call.name, .arguments = {}});
    }
    ToolCall& sent = message_.tool_calls[i];
    if (sent.name != call.name) return;  // what came before reads differently now; it stays as it was sent
    const std::string_view added = growth(sent.arguments, call.arguments);
    if (!begins && added.empty()) continue;
    MessageDelta& delta = out.emplace_back();
    delta.tool_index = i;
    if (begins) {
      delta.tool_id = sent.id;
      delta.tool_name = sent.name;
    }
    delta.tool_arguments = added;
    sent.arguments += added;
  }
}

// Whether the call's name and id are final. A name that is still growing looks like a name: it is whole once something
// follows it, or when no other tool begins so. An id of the model's own must be waited for, as its template may accept
// no other when the call comes back in the history.
bool LlamaOutputParser::call_is_known(const common_chat_msg& now, std::size_t index, bool last) const {
  const common_chat_tool_call& call = now.tool_calls[index];
  if (call.name.empty()) return false;
  if (last || index + 1 < now.tool_calls.size()) return true;
  if (state_->model_gives_ids && call.id.empty()) return false;
  if (call.arguments.size() > 1) return true;
  bool known = false;
  for (const std::string& name : state_->tool_names) {
    if (name == call.name) known = true;
    if (name.size() > call.name.size() && name.starts_with(call.name)) return false;
  }
  return known;
}

std::string LlamaOutputParser::new_call_id(const std::string& given) const {
  std::string id = given.empty() ? state_->make_call_id() : given;
  while (std::ranges::find(message_.tool_calls, id, &ToolCall::id) != message_.tool_calls.end()) {
    id = state_->make_call_id();  // some models repeat an id
  }
  return id;
}

// Where in text_ the part begins that was not given out: after the reasoning and the content in it, which stand there
// as they were sent. Tool calls do not, so behind one it is where the text ended when something last came out.
std::size_t LlamaOutputParser::unsent_begin() const {
  if (!message_.tool_calls.empty()) return emitted_bytes_;
  std::size_t begin = 0;
  for (const std::string* part : {&message_.reasoning, &message_.content}) {
    if (part->empty()) continue;
    const auto at = text_.find(*part, begin);
    if (at == std::string::npos) return emitted_bytes_;
    begin = at + part->size();
  }
  if (message_.reasoning.empty() || !message_.content.empty()) return begin;
  for (const std::string& tag : state_->thinking_end_tags) {
    if (const auto at = text_.find(tag, begin); at != std::string::npos) return at + tag.size();
  }
  return begin;
}

bool LlamaOutputParser::has_whole_call() const {
  return !message_.tool_calls.empty() && Json::accept(message_.tool_calls.back().arguments);
}

// The answer does not parse as a whole: what was not given out yet is content, as it stands. Behind the one call that
// was asked for it is the beginning of another one.
void LlamaOutputParser::give_up(std::vector<MessageDelta>& out) {
  if (state_->one_call && has_whole_call()) return;
  const std::string rest = text_.substr(unsent_begin());
  if (rest.empty()) return;
  out.emplace_back().content = rest;
  message_.content += rest;
}

}  // namespace coppice::chat
