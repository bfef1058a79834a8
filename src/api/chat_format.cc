#include "api/chat_format.h"

#include "api/errors.h"
#include "api/json_text.h"
#include "api/message_json.h"

namespace coppice::api {
namespace {

const char* finish_reason(sched::StopKind stop, const chat::Message& message) {
  if (stop == sched::StopKind::length) return "length";
  return message.tool_calls.empty() ? "stop" : "tool_calls";
}

// One parsed piece as the deltas that clients expect: one kind of content each; a tool call's name first, alone.
std::vector<Json> deltas_json(const chat::MessageDelta& delta) {
  std::vector<Json> out;
  if (!delta.reasoning.empty()) out.push_back({{"reasoning_content", delta.reasoning}});
  if (!delta.content.empty()) out.push_back({{"content", delta.content}});
  if (!delta.tool_index) return out;
  const auto add_call = [&](Json call) {
    Json calls = Json::array();
    calls.push_back(std::move(call));
    out.push_back({{"tool_calls", std::move(calls)}});
  };
  if (!delta.tool_name.empty()) {
    add_call({{"index", *delta.tool_index},
              {"id", delta.tool_id},
              {"type", "function"},
              {"function", {{"name", delta.tool_name}, {"arguments", ""}}}});
  }
  if (!delta.tool_arguments.empty()) {
    Json function = Json::object();
    function["arguments"] = delta.tool_arguments;
    add_call({{"index", *delta.tool_index}, {"function", std::move(function)}});
  }
  return out;
}

}  // namespace

ChatFormat::ChatFormat(FormatFacts facts, const chat::Templates& templates, chat::Prompt prompt)
    : facts_(std::move(facts)), templates_(templates), prompt_(std::move(prompt)) {}

ChatFormat::State& ChatFormat::state(const Answer& answer) {
  if (states_.size() <= answer.index) states_.resize(answer.index + 1);
  State& state = states_[answer.index];
  if (!state.parser) state.parser = templates_.make_parser(prompt_);
  return state;
}

Json ChatFormat::head(const char* object) const {
  return {{"id", facts_.id},
          {"object", object},
          {"created", facts_.created_unix_s},
          {"model", facts_.model},
          {"system_fingerprint", facts_.build},
          {"choices", Json::array()}};
}

Json ChatFormat::chunk(const Answer& answer, Json delta, const char* finish_reason) {
  Json choice = {{"index", answer.index}, {"delta", std::move(delta)}};
  auto& held = state(answer).held_probs;
  if (!held.empty()) {
    choice["logprobs"] = chat_logprobs(held, facts_.probs());
    held.clear();
  }
  choice["finish_reason"] = finish_reason == nullptr ? Json(nullptr) : Json(finish_reason);
  Json out = head("chat.completion.chunk");
  out["choices"].push_back(std::move(choice));
  return out;
}

std::string ChatFormat::role_once(const Answer& answer) {
  if (std::exchange(state(answer).role_sent, true)) return {};
  return to_sse(chunk(answer, {{"role", "assistant"}, {"content", nullptr}}, nullptr));
}

std::string ChatFormat::feed(const Answer& answer, const sched::TextDelta& delta, bool last) {
  std::string out = role_once(answer);
  State& now = state(answer);
  now.held_probs.insert(now.held_probs.end(), delta.probs.begin(), delta.probs.end());
  if (delta.text.empty() && !last) return out;
  for (const auto& piece : now.parser->feed(delta.text, last)) {
    for (Json& json : deltas_json(piece)) out += to_sse(chunk(answer, std::move(json), nullptr));
  }
  return out;
}

void ChatFormat::on_confirmed(const chat::Prompt& prompt, bool continued) {
  prompt_ = prompt;
  facts_.session.continued = continued;
}

std::string ChatFormat::on_progress(const Answer& answer, const sched::Progress& progress) {
  std::string out = role_once(answer);
  Json json = chunk(answer, Json::object(), nullptr);
  json["prompt_progress"] = progress_json(progress);
  return out += to_sse(json);
}

std::string ChatFormat::on_delta(const Answer& answer, const sched::TextDelta& delta) {
  return feed(answer, delta, false);
}

std::string ChatFormat::on_finished(const Answer& answer, const sched::TextDelta& tail) {
  std::string out = feed(answer, tail, true);
  const char* reason = finish_reason(answer.stop, state(answer).parser->message());
  Json last = chunk(answer, Json::object(), reason);
  add_report(last, answer, facts_);
  return out += to_sse(last);
}

std::string ChatFormat::on_end(const std::vector<Answer>& answers) {
  std::string out;
  if (facts_.generation.include_usage) {
    Json usage = head("chat.completion.chunk");
    add_reports(usage, answers, facts_);
    out = to_sse(usage);
  }
  return out.append(kSseDone);
}

std::string ChatFormat::on_error(const Error& error) { return to_sse(error_json(error)).append(kSseDone); }

std::vector<std::string> ChatFormat::minted_ids(const Answer& answer) {
  std::vector<std::string> ids{facts_.id};
  for (const chat::ToolCall& call : message(answer)->tool_calls) ids.push_back(call.id);
  return ids;
}

Json ChatFormat::whole(const std::vector<Answer>& answers) {
  Json response = head("chat.completion");
  for (const Answer& answer : answers) {
    chat::OutputParser& parser = *state(answer).parser;
    parser.feed(answer.output.text, true);
    const chat::Message& message = parser.message();
    Json choice = {{"index", answer.index}, {"message", message_json(message)}, {"logprobs", nullptr}};
    if (!answer.output.probs.empty()) choice["logprobs"] = chat_logprobs(answer.output.probs, facts_.probs());
    choice["finish_reason"] = finish_reason(answer.stop, message);
    response["choices"].push_back(std::move(choice));
  }
  add_reports(response, answers, facts_);
  return response;
}

}  // namespace coppice::api
