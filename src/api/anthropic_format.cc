#include "api/anthropic_format.h"

#include <algorithm>
#include <utility>

#include "api/errors.h"
#include "api/json_text.h"

namespace coppice::api {
namespace {

constexpr std::string_view kPing = "event: ping\ndata: {\"type\":\"ping\"}\n\n";

// A call's arguments as the object that they stand for. Those that were cut short stand for none.
Json input_of(const std::string& arguments) {
  Json input = Json::parse(arguments, nullptr, /*allow_exceptions=*/false);
  return input.is_object() ? input : Json::object();
}

Json text_block(std::string_view text) { return {{"type", "text"}, {"text", text}}; }

Json thinking_block(std::string_view text, std::string_view signature) {
  return {{"type", "thinking"}, {"thinking", text}, {"signature", signature}};
}

Json tool_block(std::string_view id, std::string_view name, Json input) {
  return {{"type", "tool_use"}, {"id", id}, {"name", name}, {"input", std::move(input)}};
}

}  // namespace

AnthropicFormat::AnthropicFormat(FormatFacts facts, const chat::Templates& templates, const chat::Prompt& prompt,
                                 bool cache_prompt, std::optional<Json> diagnostics)
    : facts_(std::move(facts)),
      templates_(templates),
      parser_(templates.make_parser(prompt)),
      cache_prompt_(cache_prompt),
      diagnostics_(std::move(diagnostics)) {}

// Of the prompt's tokens, those that were there are "read", those that were computed and stay are "created", and
// "input" is what is neither.
Json AnthropicFormat::usage(TokenPos prompt, TokenPos reused, TokenPos predicted) const {
  const TokenPos read = std::clamp(reused, 0, prompt), computed = prompt - read;
  return {{"input_tokens", cache_prompt_ ? 0 : computed},
          {"cache_creation_input_tokens", cache_prompt_ ? computed : 0},
          {"cache_read_input_tokens", read},
          {"output_tokens", predicted}};
}

Json AnthropicFormat::usage(const sched::Report& report) const {
  return usage(report.prompt_tokens, report.reused(), report.predicted);
}

Json AnthropicFormat::message_json(Json usage) const {
  Json out = {{"id", facts_.id},          {"type", "message"},        {"role", "assistant"},
              {"model", facts_.model},    {"content", Json::array()}, {"stop_reason", nullptr},
              {"stop_sequence", nullptr}, {"usage", std::move(usage)}};
  if (diagnostics_) out["diagnostics"] = *diagnostics_;
  return out;
}

// {"stop_reason","stop_sequence"}. A template's own stop words end the turn as the end-of-generation token does.
Json AnthropicFormat::ending(const Answer& answer) const {
  const auto end = [](const char* reason, Json stop = nullptr) {
    return Json{{"stop_reason", reason}, {"stop_sequence", std::move(stop)}};
  };
  if (answer.stop == sched::StopKind::length) return end("max_tokens");
  const bool asked_for = std::ranges::find(facts_.generation.stop, answer.stop_word) != facts_.generation.stop.end();
  if (answer.stop == sched::StopKind::stop_word && asked_for) return end("stop_sequence", answer.stop_word);
  return end(parser_->message().tool_calls.empty() ? "end_turn" : "tool_use");
}

std::string AnthropicFormat::start_once(TokenPos prompt, TokenPos reused) {
  if (std::exchange(started_, true)) return {};
  return to_event({{"type", "message_start"}, {"message", message_json(usage(prompt, reused, 0))}}).append(kPing);
}

std::string AnthropicFormat::block_delta(std::size_t index, Json delta) const {
  return to_event({{"type", "content_block_delta"}, {"index", index}, {"delta", std::move(delta)}});
}

std::string AnthropicFormat::open(Block block, Json content) {
  std::string out = close();
  block_ = block;
  return out +=
         to_event({{"type", "content_block_start"}, {"index", n_blocks_++}, {"content_block", std::move(content)}});
}

std::string AnthropicFormat::close() {
  std::string out;
  if (block_ == Block::none) return out;
  if (block_ == Block::thinking) {
    out = block_delta(n_blocks_ - 1, {{"type", "signature_delta"}, {"signature", facts_.id}});
  }
  block_ = Block::none;
  return out += to_event({{"type", "content_block_stop"}, {"index", n_blocks_ - 1}});
}

std::string AnthropicFormat::add(const chat::MessageDelta& piece) {
  std::string out;
  if (!piece.reasoning.empty()) {
    if (block_ != Block::thinking) out += open(Block::thinking, thinking_block("", ""));
    out += block_delta(n_blocks_ - 1, {{"type", "thinking_delta"}, {"thinking", piece.reasoning}});
  }
  if (!piece.content.empty()) {
    if (block_ != Block::text) out += open(Block::text, text_block(""));
    out += block_delta(n_blocks_ - 1, {{"type", "text_delta"}, {"text", piece.content}});
  }
  if (piece.tool_index) out += add_call(piece);
  return out;
}

std::string AnthropicFormat::add_call(const chat::MessageDelta& piece) {
  std::string out;
  if (!piece.tool_name.empty()) {
    out += open(Block::tool_use, tool_block(piece.tool_id, piece.tool_name, Json::object()));
    block_of_call_.push_back(n_blocks_ - 1);
  }
  if (!piece.tool_arguments.empty() && *piece.tool_index < block_of_call_.size()) {
    out += block_delta(block_of_call_[*piece.tool_index],
                       {{"type", "input_json_delta"}, {"partial_json", piece.tool_arguments}});
  }
  return out;
}

std::string AnthropicFormat::feed(const sched::TextDelta& delta, bool last) {
  std::string out;
  if (delta.text.empty() && !last) return out;
  for (const auto& piece : parser_->feed(delta.text, last)) out += add(piece);
  return out;
}

void AnthropicFormat::on_confirmed(const chat::Prompt& prompt, bool continued) {
  parser_ = templates_.make_parser(prompt);
  facts_.session.continued = continued;
}

std::string AnthropicFormat::on_progress(const Answer&, const sched::Progress& progress) {
  return start_once(progress.total, progress.reused);
}

std::string AnthropicFormat::on_delta(const Answer& answer, const sched::TextDelta& delta) {
  std::string out = start_once(static_cast<TokenPos>(answer.prompt->size()), 0);
  return out += feed(delta, false);
}

std::string AnthropicFormat::on_finished(const Answer& answer, const sched::TextDelta& tail) {
  std::string out = start_once(answer.report.prompt_tokens, answer.report.reused());
  out += feed(tail, true);
  out += close();
  Json delta = {{"type", "message_delta"}, {"delta", ending(answer)}, {"usage", usage(answer.report)}};
  add_report(delta, answer, facts_);
  return out += to_event(delta);
}

std::string AnthropicFormat::on_end(const std::vector<Answer>&) { return to_event({{"type", "message_stop"}}); }

std::string AnthropicFormat::on_error(const Error& error) { return to_event(error_json(error, ErrorShape::anthropic)); }

std::string AnthropicFormat::on_silence() { return std::string(kPing); }

// The signature of a thinking block is the message's id.
std::vector<std::string> AnthropicFormat::minted_ids(const Answer&) {
  std::vector<std::string> ids{facts_.id};
  for (const chat::ToolCall& call : parser_->message().tool_calls) ids.push_back(call.id);
  return ids;
}

HttpResponse AnthropicFormat::refusal(const Error& error) const { return error_response(error, ErrorShape::anthropic); }

Json AnthropicFormat::whole(const std::vector<Answer>& answers) {
  const Answer& answer = answers.front();
  parser_->feed(answer.output.text, true);
  Json out = message_json(usage(answer.report));
  Json& content = out["content"];
  const chat::Message& said = parser_->message();
  if (!said.reasoning.empty()) content.push_back(thinking_block(said.reasoning, facts_.id));
  if (!said.content.empty()) content.push_back(text_block(said.content));
  for (const auto& call : said.tool_calls) content.push_back(tool_block(call.id, call.name, input_of(call.arguments)));
  out.update(ending(answer));
  add_report(out, answer, facts_);
  return out;
}

}  // namespace coppice::api
