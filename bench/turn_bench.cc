// What the server itself does for one request: from its body to what is submitted to the engine, with the built-in
// model's tokenizer and template. The engine is a stand-in that computes nothing.
//
// Times are of the thread's CPU. `submitted` is what the engine waits for; `handled` includes rendering the whole of a
// conversation that was guessed, which runs beside the engine.
#include <benchmark/benchmark.h>

#include <ctime>

#include "api/fakes.h"
#include "chat/llama_templates.h"
#include "engine/demo_model_for_test.h"

namespace coppice::api {
namespace {

double cpu_ms() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

// Notes when it was given a request, and answers the one it has.
class TimedEngine final : public sched::Engine {
 public:
  Result<void> submit(sched::Request request) override {
    submitted_at_ms = cpu_ms();
    last = std::move(request);
    return {};
  }
  void answer(const engine::Tokenizer& tokenizer, const std::string& text) {
    sched::Finished finished{.stop = sched::StopKind::end_of_generation, .tail = {.text = text}};
    finished.generated = tokenizer.tokenize(text, false, false);
    finished.end_token = tokenizer.tokenize("<|im_end|>", false, true).front();
    last.sink->on_finished(std::move(finished));
  }
  void cancel(RequestId) override {}
  void conclude(RequestId) override {}
  void inspect(std::function<void(sched::Inspector&)>) override {}
  RequestId next_id() override { return RequestId{++last_id_}; }
  sched::Snapshot snapshot() const override { return {}; }

  sched::Request last;
  double submitted_at_ms = 0;

 private:
  std::uint64_t last_id_ = 0;
};

struct Server {
  engine::testing::DemoModel& demo = engine::testing::demo();
  std::unique_ptr<chat::Templates> templates = *chat::make_llama_templates(*demo.model);
  TimedEngine engine;
  obs::Metrics metrics;
  session::TurnMemory turns{{}};
  Router router{Services{.tokenizer = *demo.tokenizer,
                         .samplers = *demo.samplers,
                         .templates = *templates,
                         .engine = engine,
                         .metrics = metrics,
                         .model = {.id = "m", .n_ctx = 1'000'000, .n_vocab = demo.tokenizer->n_vocab(), .n_slots = 1},
                         .limits = {},
                         .turns = &turns}};

  std::shared_ptr<FakeResponder> post(const std::string& path, std::string body) {
    auto responder = std::make_shared<FakeResponder>();
    router.handle({.method = "POST", .path = path, .body = std::move(body)}, responder);
    responder->run();
    return responder;
  }
};

Json tools() {
  Json out = Json::array();
  for (int i = 0; i < 20; ++i) {
    const std::string number = std::to_string(i);
    Json properties = {{"path", {{"type", "string"}, {"description", "a path"}}},
                       {"text", {{"type", "string"}, {"description", "the text"}}},
                       {"n", {{"type", "integer"}}}};
    out.push_back(
        {{"type", "function"},
         {"function",
          {{"name", "tool_" + number},
           {"description", "Does thing number " + number + " with the things it is given."},
           {"parameters", {{"type", "object"}, {"properties", properties}, {"required", Json::array({"path"})}}}}}});
  }
  return out;
}

Json conversation(std::int64_t steps, std::int64_t lines_per_step) {
  Json messages = Json::array();
  messages.push_back({{"role", "system"}, {"content", "You are a careful agent. Use the facts and the tools."}});
  messages.push_back({{"role", "user"}, {"content", "Please do it."}});
  for (std::int64_t i = 0; i < steps; ++i) {
    const std::string number = std::to_string(i), id = "call_" + number;
    const Json arguments = {{"path", "/src/file_" + number + ".txt"}, {"n", i}};
    const Json function = {{"name", "tool_" + std::to_string(i % 20)}, {"arguments", arguments.dump()}};
    Json call = {{"id", id}, {"type", "function"}, {"function", function}};
    messages.push_back(
        {{"role", "assistant"}, {"content", "Step " + number + "."}, {"tool_calls", Json::array({call})}});
    std::string found;
    for (std::int64_t k = 0; k < lines_per_step; ++k) {
      found += "the lamp stands near the river " + std::to_string((i * 31 + k) % 97) + "\n";
    }
    messages.push_back({{"role", "tool"}, {"tool_call_id", id}, {"content", found}});
  }
  return messages;
}

// Posts the same body again and again.
void measure(benchmark::State& state, Server& server, const std::string& path, const std::string& body) {
  server.post(path, body);  // what the first one finds out is known to the others
  double submitted_ms = 0, handled_ms = 0;
  for (auto _ : state) {
    const double begin_ms = cpu_ms();
    const auto responder = server.post(path, body);
    handled_ms += cpu_ms() - begin_ms;
    submitted_ms += server.engine.submitted_at_ms - begin_ms;
  }
  const auto n = static_cast<double>(state.iterations());
  state.counters["submitted_ms"] = submitted_ms / n;
  state.counters["handled_ms"] = handled_ms / n;
  state.counters["tokens"] = static_cast<double>(server.engine.last.prompt->size());
  state.counters["bytes"] = static_cast<double>(body.size());
}

// A conversation in a loop of tool calls that goes on from an answer of ours.
void turn_that_goes_on(benchmark::State& state) {
  Server server;
  Json body = {{"messages", conversation(state.range(0), state.range(1))}, {"tools", tools()}};
  const auto first = server.post("/v1/chat/completions", body.dump());
  server.engine.answer(*server.demo.tokenizer, "I have looked at all of it.");
  first->run();
  body["messages"].push_back({{"role", "assistant"}, {"content", "I have looked at all of it."}});
  body["messages"].push_back({{"role", "user"}, {"content", "And now?"}});
  measure(state, server, "/v1/chat/completions", body.dump());
}
BENCHMARK(turn_that_goes_on)->Args({10, 8})->Args({50, 40})->Args({200, 8})->Args({200, 50});

void prompt_of_ids(benchmark::State& state) {
  Server server;
  Json ids = Json::array();
  for (std::int64_t i = 0; i < state.range(0); ++i) ids.push_back(100 + i * 7919 % 1200);
  measure(state, server, "/completion", Json{{"prompt", std::move(ids)}, {"n_predict", 1}}.dump());
}
BENCHMARK(prompt_of_ids)->Arg(1'000)->Arg(10'000)->Arg(100'000);

}  // namespace
}  // namespace coppice::api
