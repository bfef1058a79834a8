// The engine thread from outside: inbox, limits, cancel, shutdown.
#include "sched/engine_loop.h"

#include <gtest/gtest.h>

#include <future>

#include "engine/fake_runner.h"

namespace coppice::sched {
namespace {

// One request's end, to wait for from the test's thread.
class Ending final : public EventSink {
 public:
  void on_delta(TextDelta delta) override {
    text += delta.text;
    if (!begun_.exchange(true)) first_.set_value();
  }
  void on_finished(Finished finished) override {
    text += finished.tail.text;
    end_.set_value(std::nullopt);
  }
  void on_failed(Error error) override { end_.set_value(std::move(error)); }

  void wait_for_text() { first_.get_future().wait(); }
  std::optional<Error> wait() { return end_.get_future().get(); }  // the error, or nothing for a good end
  std::string text;

 private:
  std::atomic<bool> begun_{false};
  std::promise<void> first_;
  std::promise<std::optional<Error>> end_;
};

class Loop : public testing::Test {
 protected:
  explicit Loop(SchedulerOptions options = {.n_slots = 2, .queue_limit = 4}) {
    auto runner = std::make_unique<engine::FakeRunner>(fake_options);
    fake = runner.get();
    loop = std::make_unique<EngineLoop>(options, std::move(runner), tokenizer, clock, metrics);
  }

  Result<void> prepare(const std::shared_ptr<EventSink>& ending, const Tokens& prompt) {
    Request request;
    request.id = loop->next_id();
    request.prompt = std::make_shared<const Tokens>(prompt);
    request.n_predict = 0;
    request.background = true;
    request.sink = ending;
    return loop->submit(std::move(request));
  }
  Result<void> submit(const std::shared_ptr<EventSink>& ending, const Tokens& prompt, int n_predict,
                      RequestId* id = nullptr) {
    Request request;
    request.id = loop->next_id();
    if (id != nullptr) *id = request.id;
    request.prompt = std::make_shared<const Tokens>(prompt);
    request.sampler = fake->make_sampler();
    request.n_predict = n_predict;
    request.sink = ending;
    return loop->submit(std::move(request));
  }
  std::string right_text(const Tokens& prompt, std::size_t n) const {
    return tokenizer.text(engine::FakeRunner::generate(fake_options, prompt, n), false);
  }

  engine::FakeRunnerOptions fake_options{.n_cells = 1 << 20, .n_seqs = 2};
  engine::FakeTokenizer tokenizer{1000};
  SteadyClock clock;
  obs::Metrics metrics;
  engine::FakeRunner* fake = nullptr;
  std::unique_ptr<EngineLoop> loop;
};

// A client that has its answer and then asks for the slots or the metrics must not be told of the time before.
TEST_F(Loop, TheEndOfARequestIsPublishedBeforeItIsTold) {
  class Look final : public EventSink {
   public:
    explicit Look(const EngineLoop& engine) : engine_(engine) {}
    void on_delta(TextDelta) override {}
    void on_finished(Finished) override { seen.set_value(engine_.snapshot()); }
    void on_failed(Error) override { seen.set_value({}); }
    std::promise<Snapshot> seen;

   private:
    const EngineLoop& engine_;
  };
  loop->start();
  const auto look = std::make_shared<Look>(*loop);
  ASSERT_TRUE(submit(look, {1, 2, 3}, 4));
  const Snapshot seen = look->seen.get_future().get();
  ASSERT_EQ(seen.slots.size(), 2U);
  EXPECT_FALSE(seen.slots[1].busy);
  EXPECT_EQ(seen.slots[1].held, 6);  // the last token is never evaluated
  EXPECT_EQ(seen.cells_used, 6);
}

TEST_F(Loop, AnswersRequestsOfManyThreads) {
  loop->start();
  std::vector<std::thread> clients;
  for (int c = 0; c < 4; ++c) {
    clients.emplace_back([this, c] {
      for (int i = 0; i < 20; ++i) {
        const auto ending = std::make_shared<Ending>();
        const Tokens prompt{c + 1, i + 1, 7};
        ASSERT_TRUE(submit(ending, prompt, 5));
        EXPECT_EQ(ending->wait(), std::nullopt);
        EXPECT_EQ(ending->text, right_text(prompt, 5));
      }
    });
  }
  for (auto& client : clients) client.join();
}

TEST_F(Loop, OneMoreThanTheQueueLimitIsRefused) {
  std::vector<std::shared_ptr<Ending>> endings;  // the loop does not run yet: all of them wait
  for (int i = 0; i < 4; ++i) {
    endings.push_back(std::make_shared<Ending>());
    EXPECT_TRUE(submit(endings.back(), {1, 2, i + 1}, 2));
  }
  const auto refused = submit(std::make_shared<Ending>(), {1}, 2);
  EXPECT_EQ(refused.error().kind, ErrorKind::overloaded);
  EXPECT_EQ(loop->snapshot().queued, 4U);
  loop->start();
  for (const auto& ending : endings) EXPECT_EQ(ending->wait(), std::nullopt);
}

TEST_F(Loop, B25_BackgroundWorkTakesNoRequestsPlaceInTheQueue) {
  std::vector<std::shared_ptr<Ending>> work, endings;
  for (int i = 0; i < 5; ++i) {
    work.push_back(std::make_shared<Ending>());
    EXPECT_TRUE(prepare(work.back(), {5, 6, i + 1}));
  }
  EXPECT_EQ(loop->snapshot().queued, 0U);
  for (int i = 0; i < 4; ++i) {
    endings.push_back(std::make_shared<Ending>());
    EXPECT_TRUE(submit(endings.back(), {1, 2, i + 1}, 2));
  }
  EXPECT_TRUE(prepare(std::make_shared<Ending>(), {9})) << "a full queue is no reason to refuse it";
  loop->start();
  for (const auto& ending : endings) EXPECT_EQ(ending->wait(), std::nullopt);
  for (const auto& ending : work) (void)ending->wait();  // done, or given up for want of a sequence
}

TEST_F(Loop, B25_StoppingGivesUpBackgroundWorkAtOnce) {
  const auto work = std::make_shared<Ending>();
  ASSERT_TRUE(prepare(work, Tokens(1 << 19, 7)));  // would take some time
  loop->start();
  loop->stop(std::chrono::minutes(10));
  EXPECT_TRUE(work->wait().has_value());
}

TEST_F(Loop, AConcludedRequestEndsWell) {
  loop->start();
  const auto endless = std::make_shared<Ending>();
  RequestId id;
  ASSERT_TRUE(submit(endless, {1, 2, 3}, -1, &id));
  endless->wait_for_text();
  loop->conclude(id);
  EXPECT_EQ(endless->wait(), std::nullopt);
  EXPECT_TRUE(right_text({1, 2, 3}, 100'000).starts_with(endless->text));
  loop->conclude(id);  // it has ended: nothing happens
}

TEST_F(Loop, CancelFreesTheSlotWhileDecoding) {
  loop->start();
  const auto endless = std::make_shared<Ending>();
  RequestId id;
  ASSERT_TRUE(submit(endless, {1, 2, 3}, -1, &id));
  endless->wait_for_text();
  loop->cancel(id);
  EXPECT_EQ(endless->wait()->kind, ErrorKind::cancelled);
  const auto next = std::make_shared<Ending>();
  ASSERT_TRUE(submit(next, {4}, 2));
  EXPECT_EQ(next->wait(), std::nullopt);
  EXPECT_FALSE(loop->snapshot().slots[0].busy && loop->snapshot().slots[1].busy);
}

TEST_F(Loop, StopEndsEveryRequestExactlyOnce) {
  loop->start();
  const auto running = std::make_shared<Ending>();
  ASSERT_TRUE(submit(running, {1, 2, 3}, -1));
  running->wait_for_text();
  loop->stop(Duration{0});
  EXPECT_EQ(running->wait()->kind, ErrorKind::unavailable);
  EXPECT_EQ(submit(std::make_shared<Ending>(), {1}, 1).error().kind, ErrorKind::unavailable);
  loop->stop(Duration{0});
}

TEST_F(Loop, StopLetsRunningRequestsFinishWithinTheGrace) {
  loop->start();
  const auto running = std::make_shared<Ending>();
  ASSERT_TRUE(submit(running, {1, 2, 3}, 2000));
  running->wait_for_text();
  loop->stop(std::chrono::minutes(5));
  EXPECT_EQ(running->wait(), std::nullopt);
}

TEST_F(Loop, RequestsThatCanNeverRunAreRefusedAtOnce) {
  EXPECT_EQ(submit(std::make_shared<Ending>(), {}, 1).error().kind, ErrorKind::invalid_request);
}

}  // namespace
}  // namespace coppice::sched
