// A scheduler on a FakeRunner with a clock that stands still, and the right answer to every request.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "engine/fake_runner.h"
#include "sched/scheduler.h"

namespace coppice::sched {

// What a client saw of one request.
struct Outcome final : EventSink {
  std::string text;
  Tokens tokens;
  std::optional<Finished> finished;
  std::optional<Error> error;
  int progress_events = 0;

  void on_progress(const Progress&) override { ++progress_events; }
  void on_delta(TextDelta delta) override {
    EXPECT_FALSE(ended());
    text += delta.text;
    tokens.insert(tokens.end(), delta.tokens.begin(), delta.tokens.end());
  }
  void on_finished(Finished f) override {
    on_delta(f.tail);
    finished = std::move(f);
  }
  void on_failed(Error e) override {
    EXPECT_FALSE(ended());
    error = std::move(e);
  }
  bool ended() const { return finished || error; }
  const Report& report() const { return finished.value().report; }
};

class World {
 public:
  explicit World(engine::FakeRunnerOptions runner_options = {}, SchedulerOptions options = {})
      : fake_options(runner_options),
        runner(runner_options),
        tokenizer(runner_options.n_vocab),
        scheduler(options, runner, tokenizer, clock, metrics) {}

  Request make(const Tokens& prompt, const Placement& placement = {}, int n_predict = 4) {
    Request request;
    request.id = RequestId{++last_id};
    request.prompt = std::make_shared<const Tokens>(prompt);
    request.sampler = runner.make_sampler();
    request.placement = placement;
    request.n_predict = n_predict;
    return request;
  }

  // Queues a request; its answer grows as the scheduler steps.
  std::shared_ptr<Outcome> submit(Request request) {
    auto outcome = std::make_shared<Outcome>();
    request.sink = outcome;
    EXPECT_TRUE(scheduler.check(request).has_value());
    scheduler.submit(std::move(request));
    return outcome;
  }
  std::shared_ptr<Outcome> submit(const Tokens& prompt, const Placement& placement = {}, int n_predict = 4) {
    return submit(make(prompt, placement, n_predict));
  }

  void run() {
    while (scheduler.step()) scheduler.check_invariants();
    EXPECT_TRUE(scheduler.idle());
    EXPECT_EQ(scheduler.sequences().cells().used(), runner.used());
  }

  // Runs one request to its end and checks its answer against the prompt alone.
  Report ask(const Tokens& prompt, const Placement& placement = {}, int n_predict = 4) {
    const auto outcome = submit(prompt, placement, n_predict);
    run();
    EXPECT_EQ(outcome->text, right_text(prompt, n_predict));
    return outcome->report();
  }

  Tokens right_tokens(const Tokens& prompt, int n_predict) const {
    return engine::FakeRunner::generate(fake_options, prompt, static_cast<std::size_t>(n_predict));
  }
  std::string right_text(const Tokens& prompt, int n_predict) const {
    return tokenizer.text(right_tokens(prompt, n_predict), false);
  }
  // The prompt of the next turn: this one, its answer, and something new.
  Tokens next_turn(const Tokens& prompt, int n_predict, const Tokens& more) const {
    Tokens next = prompt;
    for (const Tokens& part : {right_tokens(prompt, n_predict), more})
      next.insert(next.end(), part.begin(), part.end());
    return next;
  }

  engine::FakeRunnerOptions fake_options;
  engine::FakeRunner runner;
  engine::FakeTokenizer tokenizer;
  ManualClock clock;
  obs::Metrics metrics;
  Scheduler scheduler;
  std::uint64_t last_id = 0;
};

// `count` different tokens, other ones for other seeds.
inline Tokens tokens_of(int seed, int count) {
  Tokens tokens;
  for (int i = 0; i < count; ++i) tokens.push_back(1 + (seed * 7919 + i * 104729) % 998);
  return tokens;
}
inline Tokens operator+(Tokens a, const Tokens& b) { return a.insert(a.end(), b.begin(), b.end()), a; }

}  // namespace coppice::sched
