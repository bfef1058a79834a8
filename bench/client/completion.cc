#include "client/completion.h"

#include <algorithm>

#include "client/http.h"

namespace coppice::bench {
namespace {

constexpr std::size_t kErrorShown = 300;  // bytes of an answer that was an error
constexpr int kAnswerBias = 100;          // the most that OpenAI's API allows

// Or a piece of a tool call.
bool has_text(const Json& event) {
  const auto choices = event.find("choices");
  if (choices == event.end() || !choices->is_array()) return false;
  return std::ranges::any_of(*choices, [](const Json& choice) {
    const auto delta = choice.find("delta");
    const Json& holder = delta != choice.end() && delta->is_object() ? *delta : choice;
    if (const auto calls = holder.find("tool_calls"); calls != holder.end() && !calls->empty()) return true;
    for (const char* name : {"text", "content", "reasoning_content"}) {
      const auto text = holder.find(name);
      if (text != holder.end() && text->is_string() && !text->get_ref<const std::string&>().empty()) return true;
    }
    return false;
  });
}

std::optional<std::int64_t> integer(const Json& object, const char* name) {
  if (!object.is_object()) return std::nullopt;
  const auto it = object.find(name);
  if (it == object.end() || !it->is_number()) return std::nullopt;
  return it->get<std::int64_t>();
}

// What was computed of the prompt, if the server says so.
std::optional<std::int64_t> computed_tokens(const Json& timings, const Json& usage) {
  if (const auto n = integer(timings, "prompt_n")) return n;
  const auto prompt = integer(usage, "prompt_tokens");
  const auto cached =
      integer(usage.is_object() ? usage.value("prompt_tokens_details", Json()) : Json(), "cached_tokens");
  if (!prompt || !cached) return std::nullopt;
  return *prompt - *cached;
}

}  // namespace

Json completion_json(const CompletionRequest& request, const std::string& model, const Vocabulary& vocabulary) {
  Json body = {{"model", model}, {"temperature", 0}, {"stream", true}, {"stream_options", {{"include_usage", true}}}};
  if (request.messages.is_null()) {
    body["prompt"] = request.prompt;
    body["max_tokens"] = request.n_answer;
    body["ignore_eos"] = true;
    body["logit_bias"] = {{std::to_string(vocabulary.answer), kAnswerBias}};
  } else {
    body["messages"] = request.messages;
  }
  if (!request.session.empty()) body["session_id"] = request.session;
  if (!request.options.is_null()) body.update(request.options);
  return body;
}

void CompletionReader::read_event(const Json& event, double now_ms) {
  if (const auto it = event.find("error"); it != event.end()) error_ = it->dump();
  if (has_text(event)) {
    if (!last_token_ms_) answer_.first_ms = now_ms;
    if (last_token_ms_) answer_.token_gap_ms_max = std::max(answer_.token_gap_ms_max, now_ms - *last_token_ms_);
    last_token_ms_ = now_ms;
    ++answer_.n_answer;
  }
  message_.read(event);
  if (const auto it = event.find("usage"); it != event.end() && it->is_object()) usage_ = *it;
  if (const auto it = event.find("timings"); it != event.end() && it->is_object()) timings_ = *it;
}

void CompletionReader::feed(std::string_view bytes, double now_ms) {
  if (raw_.size() < kErrorShown) raw_ += bytes.substr(0, kErrorShown - raw_.size());
  sse_.feed(bytes);
  while (const std::optional<std::string> data = sse_.next()) {
    if (*data == "[DONE]") {
      done_ = true;
      continue;
    }
    const Json event = Json::parse(*data, nullptr, false);
    if (event.is_object()) {
      read_event(event, now_ms);
    } else {
      error_ = "an event that is no JSON object";
    }
  }
}

Result<Completion> CompletionReader::finish(int status, double now_ms) const {
  if (status != 200) return std::unexpected("HTTP " + std::to_string(status) + ": " + raw_);
  if (!error_.empty()) return std::unexpected("error in the stream: " + error_.substr(0, kErrorShown));
  if (!done_ || !last_token_ms_) return std::unexpected("the stream ended without an answer: " + raw_);
  Completion answer = answer_;
  answer.total_ms = now_ms;
  answer.n_prompt = integer(usage_, "prompt_tokens");
  answer.n_computed = computed_tokens(timings_, usage_);
  answer.message = message_.json();
  answer.n_answer =
      integer(usage_, "completion_tokens").value_or(integer(timings_, "predicted_n").value_or(answer_.n_answer));
  if (timings_.is_object() && timings_.contains("prompt_ms")) answer.prefill_ms = timings_["prompt_ms"].get<double>();
  return answer;
}

Result<Completion> complete(const Url& server, const CompletionRequest& request, const std::string& model,
                            const Vocabulary& vocabulary) {
  using Clock = std::chrono::steady_clock;
  HttpRequest http{.method = "POST", .path = request.messages.is_null() ? "/v1/completions" : "/v1/chat/completions"};
  http.body = completion_json(request, model, vocabulary).dump();
  CompletionReader reader;
  const auto start = Clock::now();
  const auto now_ms = [&] { return std::chrono::duration<double, std::milli>(Clock::now() - start).count(); };
  const Result<int> status = send(server, http, [&](std::string_view bytes) { reader.feed(bytes, now_ms()); });
  if (!status) return std::unexpected(status.error());
  return reader.finish(*status, now_ms());
}

}  // namespace coppice::bench
