// Stand-ins for everything around the api layer, for its tests. Single-threaded: events reach the exchange when
// FakeResponder::run() is called.
#pragma once

#include <algorithm>
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/fake_inspector.h"
#include "api/router.h"
#include "base/json.h"
#include "obs/metrics.h"

namespace coppice::api {

// One token per byte, plus three special ones. "<|call|>" and "</s>" are one token where special tokens are parsed.
class FakeTokenizer final : public engine::Tokenizer {
 public:
  static constexpr Token kBos = 256, kEos = 257, kCall = 258;
  bool add_bos = true;
  bool merge_lines = false;                   // a line's end and the byte after it are one token, named by that byte
  mutable std::size_t longest_tokenized = 0;  // bytes

  std::size_t piece_bytes_max() const override { return 8; }
  Tokens tokenize(std::string_view text, bool add_special, bool parse_special) const override {
    constexpr std::string_view kCallText = "<|call|>", kEosText = "</s>";
    longest_tokenized = std::max(longest_tokenized, text.size());
    Tokens out;
    if (add_special && add_bos) out.push_back(kBos);
    while (!text.empty()) {
      if (merge_lines && text.size() > 1 && text.front() == '\n') text.remove_prefix(1);
      const bool call = parse_special && text.starts_with(kCallText);
      const bool eos = parse_special && text.starts_with(kEosText);
      out.push_back(call ? kCall : eos ? kEos : static_cast<unsigned char>(text.front()));
      text.remove_prefix(call ? kCallText.size() : eos ? kEosText.size() : 1);
    }
    return out;
  }
  std::string piece(Token token, bool special) const override {
    if (token < 256) return {static_cast<char>(token)};
    if (!special) return "";
    return token == kBos ? "<s>" : token == kEos ? "</s>" : "<|call|>";
  }
  bool is_end_of_generation(Token token) const override { return token == kEos; }
  std::int32_t n_vocab() const override { return 259; }
};

class FakeSampler final : public engine::Sampler {
 public:
  explicit FakeSampler(Json made_from) : body(std::move(made_from)) {}
  void accept_prompt(std::span<const Token>) override {}
  Json body;
};

class FakeSamplerFactory final : public engine::SamplerFactory {
 public:
  Result<std::unique_ptr<engine::Sampler>> make(const Json& body, const engine::ChatConstraint&) const override {
    if (body.contains("temperature") && !body["temperature"].is_number()) {
      return invalid("'temperature' must be a number", "temperature");
    }
    return std::make_unique<FakeSampler>(body);
  }
  Json settings(const Json& body) const override { return {{"temperature", body.value("temperature", 0.5)}}; }
};

// Reads each fed text by its first character: 'R' reasoning, 'T' a tool call's name, 'A' more of its arguments, 'H'
// text that is held back to the end, anything else content.
class FakeParser final : public chat::OutputParser {
 public:
  explicit FakeParser(bool one_call) : one_call_(one_call) {}
  std::vector<chat::MessageDelta> feed(std::string_view text, bool last) override {
    std::vector<chat::MessageDelta> out;
    has_enough_ = has_enough_ || (one_call_ && text.starts_with('T') && !message_.tool_calls.empty());
    if (has_enough_) return out;
    const std::string rest(text.substr(std::min<std::size_t>(1, text.size())));
    if (text.starts_with('H')) held_ += rest;
    if (text.starts_with('R')) message_.reasoning += out.emplace_back().reasoning = rest;
    if (text.starts_with('T')) begin_call(out.emplace_back(), rest);
    if (text.starts_with('A')) add_arguments(out.emplace_back(), rest);
    if (!text.empty() && std::string_view("HRTA").find(text.front()) == std::string_view::npos) {
      message_.content += out.emplace_back().content = text;
    }
    if (last && !held_.empty()) message_.content += out.emplace_back().content = std::exchange(held_, "");
    return out;
  }
  const chat::Message& message() const override { return message_; }
  bool has_enough() const override { return has_enough_; }

 private:
  void begin_call(chat::MessageDelta& delta, const std::string& name) {
    message_.tool_calls.push_back({"call_" + std::to_string(message_.tool_calls.size()), name, ""});
    delta.tool_index = message_.tool_calls.size() - 1;
    delta.tool_id = message_.tool_calls.back().id;
    delta.tool_name = name;
  }
  void add_arguments(chat::MessageDelta& delta, const std::string& arguments) {
    delta.tool_index = message_.tool_calls.size() - 1;
    message_.tool_calls.back().arguments += delta.tool_arguments = arguments;
  }

  const bool one_call_;
  bool has_enough_ = false;
  chat::Message message_;
  std::string held_;
};

class FakeTemplates final : public chat::Templates {
 public:
  std::string generation_prompt;   // after the last message, unless unwanted
  std::string message_end = "\n";  // after each message
  std::function<std::string(const Json& messages)> preamble = [](auto&) { return ""; };
  mutable Json rendered;  // the last body
  std::function<bool(const Json& messages)> accepts = [](auto&) { return true; };

  Result<chat::Prompt> render(const Json& body) const override {
    auto messages = body.find("messages");
    if (messages == body.end() || !messages->is_array()) return invalid("'messages' must be an array", "messages");
    rendered = body;
    if (!accepts(*messages)) return invalid("the template does not take these messages", "messages");
    chat::Prompt prompt;
    prompt.text = preamble(*messages);
    for (const Json& message : *messages) {
      const Json content = message.value("content", Json(nullptr));
      prompt.text +=
          message.value("role", "") + ":" + (content.is_string() ? content.get<std::string>() : "") + message_end;
    }
    if (body.value("add_generation_prompt", true)) prompt.text += generation_prompt;
    prompt.stops = {"<end>"};
    prompt.one_call = body.value("parallel_tool_calls", true) == false;
    prompt.constraint.preserved_tokens = {"<|call|>", "two"};
    return prompt;
  }
  std::unique_ptr<chat::OutputParser> make_parser(const chat::Prompt& prompt) const override {
    return std::make_unique<FakeParser>(prompt.one_call);
  }
  std::string source() const override { return "{{ messages }}"; }
  Json capabilities() const override { return {{"supports_tools", true}}; }
  chat::LateSystemFacts late_system() const override { return {"refused", "user", true}; }
};

// Keeps the requests; the test plays the engine thread by calling their sinks.
class FakeEngine final : public sched::Engine {
 public:
  Result<void> submit(sched::Request request) override {
    if (auto error = errors.find(requests.size()); error != errors.end()) return std::unexpected(error->second);
    requests.push_back(std::move(request));
    return {};
  }
  void cancel(RequestId id) override { cancelled.push_back(id); }
  void conclude(RequestId id) override { concluded.push_back(id); }
  void inspect(std::function<void(sched::Inspector&)> task) override {
    inspections.push_back(std::move(task));
    if (!engine_stuck) run_inspections();
  }
  RequestId next_id() override { return RequestId{++last_id}; }
  sched::Snapshot snapshot() const override { return state; }

  void text(std::size_t i, std::string text) { requests[i].sink->on_delta({.text = std::move(text)}); }
  void finish(std::size_t i, sched::StopKind stop = sched::StopKind::end_of_generation, sched::Report report = {}) {
    requests[i].sink->on_finished({.stop = stop, .report = std::move(report)});
  }

  void run_inspections() {
    for (const auto& task : std::exchange(inspections, {})) task(inspector);
  }

  FakeInspector inspector;
  bool engine_stuck = false;  // inspections then wait for run_inspections()
  std::vector<std::function<void(sched::Inspector&)>> inspections;
  std::map<std::size_t, Error> errors;  // by how many requests were accepted before
  std::vector<sched::Request> requests;
  std::vector<RequestId> cancelled, concluded;
  std::uint64_t last_id = 0;
  sched::Snapshot state;
};

class FakeResponder final : public Responder {
 public:
  void send(HttpResponse answer) override {
    ++n_sent;
    response = std::move(answer);
  }
  void start_stream(std::string type) override { stream_type = std::move(type); }
  bool write(std::string bytes) override {
    written += bytes;
    return !reader_stuck;
  }
  void finish() override { finished = true; }
  void set_keepalive(std::function<std::string()> make, std::chrono::seconds interval) override {
    make_keepalive = std::move(make);
    keepalive_interval = interval;
  }
  void post(std::function<void()> task) override { tasks.push_back(std::move(task)); }
  void on_gone(std::function<void()> callback) override { gone_callback = std::move(callback); }

  void run() {
    while (!tasks.empty()) {
      auto task = std::move(tasks.front());
      tasks.pop_front();
      task();
    }
  }
  void client_leaves() {
    if (gone_callback) post(std::exchange(gone_callback, nullptr));
    run();
  }

  Json json() const { return Json::parse(response.body); }
  // The stream's records without "data: ": JSON, "[DONE]", or ": comment".
  std::vector<std::string> records() const {
    std::vector<std::string> out;
    for (std::size_t begin = 0; begin < written.size();) {
      const std::size_t end = written.find("\n\n", begin);
      if (end == std::string::npos) return {"the stream does not end with an empty line"};
      std::string record = written.substr(begin, end - begin);
      out.push_back(record.starts_with("data: ") ? record.substr(6) : record);
      begin = end + 2;
    }
    return out;
  }
  std::vector<Json> chunks() const {
    std::vector<Json> out;
    for (const std::string& record : records()) {
      if (record != "[DONE]") out.push_back(Json::parse(record));
    }
    return out;
  }

  HttpResponse response;
  int n_sent = 0;
  std::string stream_type, written;
  bool finished = false, reader_stuck = false;
  std::function<std::string()> make_keepalive;  // null: none was asked for
  std::chrono::seconds keepalive_interval{0};
  std::deque<std::function<void()>> tasks;
  std::function<void()> gone_callback;
};

// A router on fakes. Change the public parts before the first request.
struct FakeServer {
  FakeTokenizer tokenizer;
  FakeSamplerFactory samplers;
  FakeTemplates templates;
  FakeEngine engine;
  obs::Metrics metrics;
  ModelFacts model = {.id = "test-model",
                      .path = "/models/test.gguf",
                      .build = "coppice test",
                      .n_params = 1000,
                      .file_bytes = 2000,
                      .n_ctx = 128,
                      .n_ctx_train = 512,
                      .n_vocab = 259,
                      .n_embd = 8,
                      .n_slots = 4,
                      .bos_token = "<s>",
                      .eos_token = "</s>",
                      .created_unix_s = 77};
  Limits limits;
  std::vector<std::string> api_keys;
  std::int32_t default_n_predict = -1;
  bool endpoint_slots = true, endpoint_metrics = true, session_inference = true;
  session::TurnMemory* turns = nullptr;
  IdlePrefill idle_prefill;
  std::optional<Router> router;

  Router& started() {
    if (!router) {
      router.emplace(Services{.tokenizer = tokenizer,
                              .samplers = samplers,
                              .templates = templates,
                              .engine = engine,
                              .metrics = metrics,
                              .model = model,
                              .limits = limits,
                              .api_keys = api_keys,
                              .default_n_predict = default_n_predict,
                              .endpoint_slots = endpoint_slots,
                              .endpoint_metrics = endpoint_metrics,
                              .session_inference = session_inference,
                              .turns = turns,
                              .idle_prefill = idle_prefill,
                              .unix_time_s = [] { return std::int64_t{1234}; }});
    }
    return *router;
  }
  const Context& context() { return *started().context(); }

  std::shared_ptr<FakeResponder> request(HttpRequest http) {
    auto responder = std::make_shared<FakeResponder>();
    started().handle(std::move(http), responder);
    responder->run();
    return responder;
  }
  std::shared_ptr<FakeResponder> get(std::string path, std::string query = "") {
    return request({.method = "GET", .path = std::move(path), .query = std::move(query)});
  }
  std::shared_ptr<FakeResponder> del(std::string path, std::string query = "") {
    return request({.method = "DELETE", .path = std::move(path), .query = std::move(query)});
  }
  std::shared_ptr<FakeResponder> post(std::string path, std::string body,
                                      std::map<std::string, std::string> headers = {}) {
    return request({.method = "POST", .path = std::move(path), .headers = std::move(headers), .body = std::move(body)});
  }
};

// A report with every field different, to tell them apart in answers.
inline sched::Report full_report() {
  using std::chrono::milliseconds;
  sched::Report report;
  report.slot = SlotId{2};
  report.prompt_tokens = 100;
  report.computed = 40;
  report.reused_slot = 30;
  report.reused_donor = 20;
  report.reused_pool = 5;
  report.reused_host = 3;
  report.reused_disk = 2;
  report.prepared = 15;
  report.predicted = 8;
  report.source = kv::Source::slot;
  report.reason = kv::MissReason::diverged;
  report.diverged_at = 60;
  report.diverged_text = "here";
  report.pauses = 1;
  report.coalesced = true;
  report.pinned = 50;
  report.pins_refused = 2;
  report.queued = milliseconds(1);
  report.restore = milliseconds(2);
  report.prefill = milliseconds(80);
  report.decode = milliseconds(400);
  return report;
}

}  // namespace coppice::api
