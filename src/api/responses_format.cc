#include "api/responses_format.h"

#include <algorithm>
#include <utility>

#include "api/errors.h"
#include "api/json_text.h"

namespace coppice::api {
namespace {

// The hexadecimal part of "resp_...", which the ids of its items share.
std::string stem_of(const std::string& id) { return id.substr(id.find('_') + 1); }

Json field_or(const Json& body, const char* name, Json fallback) {
  const auto it = body.find(name);
  return it == body.end() || it->is_null() ? std::move(fallback) : *it;
}

// A field of an object in the body, as `text` and `reasoning` are.
Json nested_or_null(const Json& body, const char* outer, const char* name) {
  const auto it = body.find(outer);
  return it == body.end() || !it->is_object() ? Json(nullptr) : field_or(*it, name, nullptr);
}

Json error_of(const Error& error) {
  const Json json = error_json(error)["error"];
  return {{"code", json["code"].is_null() ? json["type"] : json["code"]}, {"message", json["message"]}};
}

}  // namespace

Json describe_request(const Json& body, const FormatFacts& facts) {
  Json format = nested_or_null(body, "text", "format");
  if (format.is_null()) format = {{"type", "text"}};
  Json out = {{"id", facts.id},
              {"object", "response"},
              {"created_at", facts.created_unix_s},
              {"status", "in_progress"},
              {"background", false},
              {"error", nullptr},
              {"incomplete_details", nullptr},
              {"model", facts.model},
              {"output", Json::array()},
              {"reasoning",
               {{"effort", nested_or_null(body, "reasoning", "effort")},
                {"summary", nested_or_null(body, "reasoning", "summary")}}},
              {"text", {{"format", std::move(format)}}},
              {"usage", nullptr}};
  for (const char* name : {"instructions", "max_output_tokens", "previous_response_id", "prompt_cache_key",
                           "safety_identifier", "temperature", "top_p", "user"}) {
    out[name] = field_or(body, name, nullptr);
  }
  out["metadata"] = field_or(body, "metadata", Json::object());
  out["parallel_tool_calls"] = field_or(body, "parallel_tool_calls", true);
  out["store"] = field_or(body, "store", true);
  out["tool_choice"] = field_or(body, "tool_choice", "auto");
  out["tools"] = field_or(body, "tools", Json::array());
  out["truncation"] = field_or(body, "truncation", "disabled");
  return out;
}

ResponsesFormat::ResponsesFormat(FormatFacts facts, const chat::Templates& templates, const chat::Prompt& prompt,
                                 ToolNames tools, Json described, OnEnded on_ended)
    : facts_(std::move(facts)),
      templates_(templates),
      parser_(templates.make_parser(prompt)),
      output_(stem_of(facts_.id), std::move(tools), described["reasoning"]["summary"].is_string()),
      response_(std::move(described)),
      on_ended_(std::move(on_ended)) {}

std::string ResponsesFormat::told(const char* type, Json response) {
  return output_.event(type, {{"response", std::move(response)}});
}

void ResponsesFormat::on_confirmed(const chat::Prompt& prompt, bool continued) {
  parser_ = templates_.make_parser(prompt);
  facts_.session.continued = continued;
}

std::string ResponsesFormat::on_begin() {
  std::string out = told("response.created", response_);
  return out += on_silence();
}

std::string ResponsesFormat::on_silence() { return told("response.in_progress", response_); }

std::string ResponsesFormat::on_progress(const Answer&, const sched::Progress&) { return {}; }

std::string ResponsesFormat::feed(std::string_view text, bool last) {
  std::string out;
  if (text.empty() && !last) return out;
  for (const auto& piece : parser_->feed(text, last)) out += output_.feed(piece);
  return out;
}

std::string ResponsesFormat::on_delta(const Answer&, const sched::TextDelta& delta) { return feed(delta.text, false); }

// REQUIRES: the output has ended.
Json ResponsesFormat::ended(const Answer& answer) {
  const bool complete = answer.stop != sched::StopKind::length;
  Json response = response_;
  response["status"] = complete ? "completed" : "incomplete";
  if (!complete) response["incomplete_details"] = {{"reason", "max_output_tokens"}};
  response["output"] = output_.items();
  response["usage"] = usage(answer);
  add_report(response, answer, facts_);
  on_ended_(response, answer.report);
  return response;
}

Json ResponsesFormat::usage(const Answer& answer) const {
  const sched::Report& report = answer.report;
  // Tokenizing a text again may give some other tokens than those that were generated, but hardly another number.
  const std::string& reasoning = parser_->message().reasoning;
  const auto n = static_cast<TokenPos>(facts_.tokenizer.tokenize(reasoning, false, false).size());
  return {{"input_tokens", report.prompt_tokens},
          {"input_tokens_details", {{"cached_tokens", report.reused()}}},
          {"output_tokens", report.predicted},
          {"output_tokens_details", {{"reasoning_tokens", std::min(n, report.predicted)}}},
          {"total_tokens", report.prompt_tokens + report.predicted}};
}

// Item ids name their response, see ResponsesOutput.
std::vector<std::string> ResponsesFormat::minted_ids(const Answer&) {
  std::vector<std::string> ids{facts_.id};
  for (const chat::ToolCall& call : parser_->message().tool_calls) ids.push_back(call.id);
  return ids;
}

std::string ResponsesFormat::on_finished(const Answer& answer, const sched::TextDelta& tail) {
  std::string out = feed(tail.text, true);
  const bool complete = answer.stop != sched::StopKind::length;
  out += output_.end(complete);
  return out += told(complete ? "response.completed" : "response.incomplete", ended(answer));
}

std::string ResponsesFormat::on_end(const std::vector<Answer>&) { return {}; }

std::string ResponsesFormat::on_error(const Error& error) {
  Json response = response_;
  response["status"] = "failed";
  response["error"] = error_of(error);
  response["output"] = output_.items();
  return told("response.failed", std::move(response));
}

Json ResponsesFormat::whole(const std::vector<Answer>& answers) {
  const Answer& answer = answers.front();
  feed(answer.output.text, true);
  output_.end(answer.stop != sched::StopKind::length);
  return ended(answer);
}

}  // namespace coppice::api
