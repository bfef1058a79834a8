// Many clients at once, clients that go away, and a queue that is full.
#include <atomic>
#include <thread>

#include "support.h"

namespace coppice::http_test {
namespace {

class Load : public ServerTest {
 protected:
  // With so many cells that neither a long prompt nor an endless answer ends by itself while a test looks away.
  void serve_long(std::vector<std::string> args) {
    args.insert(args.end(), {"-c", "32768"});
    serve(args);
  }

  bool busy(int id) const { return slot(id)["is_processing"].get<bool>(); }

  // A stream that goes on until the client leaves, in this slot.
  Stream endless(int slot, std::uint64_t seed = 900) const {
    Json body = greedy(random_tokens(seed, 20), 100'000);
    body["ignore_eos"] = true;
    body["id_slot"] = slot;
    Stream stream = client().stream("/completion", body);
    EXPECT_TRUE(stream.next_json().is_object());
    // The first token may come before the scheduler's state says that the request left the queue.
    EXPECT_TRUE(eventually([&] { return busy(slot); }));
    return stream;
  }
};

TEST_F(Load, TwoHundredStreamsOnFourSlotsAllFinish) {
  ASSERT_NO_FATAL_FAILURE(serve({"-np", "4"}));
  constexpr std::size_t kStreams = 200;
  std::vector<Events> results(kStreams);
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < kStreams; ++i) {
      threads.emplace_back([&, i] {
        results[i] = collect(client().stream(
            "/v1/completions",
            {{"prompt", random_tokens(i + 1, 12)}, {"max_tokens", 4}, {"ignore_eos", true}, {"temperature", 0}}));
      });
    }
  }
  for (std::size_t i = 0; i < kStreams; ++i) {
    SCOPED_TRACE("stream " + std::to_string(i));
    ASSERT_EQ(results[i].status, 200);
    EXPECT_TRUE(results[i].done);
    EXPECT_TRUE(results[i].complete);
    ASSERT_FALSE(results[i].list.empty());
    EXPECT_EQ(results[i].last()["choices"][0]["finish_reason"], "length");
    EXPECT_EQ(results[i].last()["timings"]["predicted_n"], 4);
  }
  EXPECT_EQ(metric("coppice_requests_finished_total"), kStreams);
  EXPECT_EQ(metric("coppice_requests_failed_total"), 0);
  EXPECT_EQ(metric("coppice_slots_busy"), 0);
}

TEST_F(Load, AFullQueueIsAnswered503AndToldWhenToRetry) {
  ASSERT_NO_FATAL_FAILURE(serve_long({"-np", "1", "--queue-limit", "2"}));
  Stream running = endless(0);
  std::vector<Events> queued(2);
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < queued.size(); ++i) {
    threads.emplace_back(
        [&, i] { queued[i] = collect(client().stream("/completion", greedy(random_tokens(i, 8), 2))); });
  }
  ASSERT_TRUE(eventually([&] { return metric("coppice_requests_queued") == 2; }));
  for (const char* path : {"/completion", "/v1/completions", "/v1/chat/completions"}) {
    for (const bool stream : {false, true}) {
      const Response refused = client().post(
          path, {{"prompt", "a"}, {"messages", messages({user("a")})}, {"n_predict", 1}, {"stream", stream}});
      EXPECT_EQ(refused.status, 503) << path;
      EXPECT_GE(std::stoi("0" + refused.headers.at("retry-after")), 1);
      EXPECT_EQ(refused.json()["error"]["type"], "overloaded_error");
    }
  }
  EXPECT_EQ(metric("coppice_requests_refused_total"), 6);
  EXPECT_EQ(metric("coppice_queue_limit"), 2);
  running.close();
  threads.clear();
  for (const Events& events : queued) {
    EXPECT_EQ(events.status, 200);
    EXPECT_TRUE(events.complete);
  }
}

TEST_F(Load, AClientThatLeavesDuringItsPromptFreesTheSlot) {
  ASSERT_NO_FATAL_FAILURE(serve_long({"-np", "2", "--prefill-chunk", "16"}));
  constexpr int kPrompt = 30'000;
  Json body = greedy(random_tokens(1, kPrompt), 10);
  body["id_slot"] = 0;
  body["return_progress"] = true;
  {
    Stream stream = client().stream("/completion", body);
    const Json progress = stream.next_json();
    ASSERT_TRUE(progress.contains("prompt_progress")) << progress.dump();
    EXPECT_LT(progress["prompt_progress"]["processed"], kPrompt);
  }
  EXPECT_TRUE(eventually([&] { return !busy(0); }));
  EXPECT_EQ(metric("coppice_requests_cancelled_total"), 1);
  EXPECT_EQ(metric("coppice_requests_finished_total"), 0);
  const int computed = static_cast<int>(metric("coppice_prompt_tokens_computed_total"));
  EXPECT_LT(computed, kPrompt) << "it was to be cancelled in the middle";
  EXPECT_EQ(slot(0)["n_held"], computed) << "what was computed is kept";
}

TEST_F(Load, AClientThatLeavesDuringItsAnswerFreesTheSlot) {
  ASSERT_NO_FATAL_FAILURE(serve_long({"-np", "1"}));
  {
    Stream stream = endless(0);
  }
  EXPECT_TRUE(eventually([&] { return !busy(0); }));
  EXPECT_EQ(metric("coppice_requests_cancelled_total"), 1);
  EXPECT_EQ(client().post("/completion", greedy(random_tokens(2, 8), 2)).status, 200);
}

TEST_F(Load, AClientThatLeavesTheQueueIsForgotten) {
  ASSERT_NO_FATAL_FAILURE(serve_long({"-np", "1"}));
  Stream running = endless(0);
  Stream waiting = client().stream("/completion", greedy(random_tokens(1, 8), 2));
  ASSERT_EQ(waiting.status(), 200);
  ASSERT_TRUE(eventually([&] { return metric("coppice_requests_queued") == 1; }));
  waiting.close();
  EXPECT_TRUE(eventually([&] { return metric("coppice_requests_queued") == 0; }));
  EXPECT_EQ(metric("coppice_requests_cancelled_total"), 1);
  EXPECT_TRUE(busy(0));
}

TEST_F(Load, AnAnswerGoesOnWhileAnothersLongPromptIsRead) {
  constexpr int kChunk = 64, kPrompt = 3000;
  ASSERT_NO_FATAL_FAILURE(serve_long({"-np", "2", "--prefill-chunk", std::to_string(kChunk)}));
  Stream answer = endless(1);
  const auto predicted = [&] { return slot(1)["next_token"][0]["n_decoded"].get<int>(); };
  const int before = predicted();

  Json body = greedy(random_tokens(2, kPrompt), 1);
  body["id_slot"] = 0;
  body["return_progress"] = true;
  const Events prompt = collect(client().stream("/completion", body));
  const int after = predicted();
  ASSERT_TRUE(busy(1));

  // Each step evaluates one token of the answer and at most a chunk less that token of the prompt.
  constexpr int kSteps = (kPrompt + kChunk - 2) / (kChunk - 1);
  EXPECT_GE(after - before, kSteps);
  int processed = 0, steps = 0;
  for (const Json& event : prompt.list) {
    if (!event.contains("prompt_progress")) continue;
    const int now = event["prompt_progress"]["processed"];
    EXPECT_LE(now - processed, kChunk - 1) << "one step's prefill is bounded";
    processed = now;
    ++steps;
  }
  EXPECT_EQ(processed, kPrompt);
  EXPECT_GE(steps, kSteps);
  for (int received = 1; received < after; ++received) ASSERT_TRUE(answer.next_json().is_object());
}

}  // namespace
}  // namespace coppice::http_test
