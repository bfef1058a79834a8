// The host and the disk tier on the real server (spec B18, B20, B21).
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>

#include "support.h"

namespace coppice::http_test {
namespace {

constexpr std::chrono::seconds kLong{60};

class Tiers : public ServerTest {
 protected:
  // Room for one of the conversations below at a time. What is on disk is read when it is asked for and not before.
  void serve_small(std::vector<std::string> more) {
    more.insert(more.end(), {"-c", "1024", "-np", "2", "--idle-prefill", "off"});
    serve(more);
  }
  Json ask(const Tokens& prompt, const std::string& session) {
    Json body = greedy(prompt, 8);
    body["session_id"] = session;
    body["n_probs"] = 10;
    body["ignore_eos"] = true;  // so that there is always a token to compare
    const Json answer = client().post("/completion", body).json();
    EXPECT_TRUE(answer.contains("coppice")) << answer.dump();
    return answer;
  }
  // What is known of one_'s session right after a start.
  void expect_session_of_before() {
    const Json list = client().get("/v1/sessions").json();
    ASSERT_EQ(list["data"].size(), 1U) << list.dump();
    const Json& session = list["data"][0];
    EXPECT_EQ(session["name"], "one");
    EXPECT_EQ(session["tokens"], length(one_));
    EXPECT_EQ(session["held"], 0);
    EXPECT_EQ(session["tiers"], Json({{"host", 0}, {"disk", length(one_)}}));
    EXPECT_EQ(session["requests"], 1);
  }
  static int computed(const Json& answer) { return answer["coppice"]["computed"].get<int>(); }
  static std::string source(const Json& answer) { return answer["coppice"]["source"].get<std::string>(); }

  const Tokens one_ = random_tokens(1, 700), two_ = random_tokens(2, 700);
  const Tokens more_ = random_tokens(3, 5);
  TempDir dir_;
};

TEST_F(Tiers, B18_AnEvictedConversationIsNotComputedAgain) {
  ASSERT_NO_FATAL_FAILURE(serve_small({"--cache-ram", "64MiB"}));
  ask(one_, "one");
  ask(two_, "two");
  const Json again = ask(joined(one_, more_), "one");
  EXPECT_EQ(computed(again), length(more_));
  EXPECT_EQ(source(again), "host");
  EXPECT_GT(client().get("/v1/cache").json()["host"]["blocks"].get<int>(), 0);
  EXPECT_GE(metric("coppice_tier_bytes{tier=\"host\"}"), 1.0);
}

TEST_F(Tiers, B18_WithoutTiersItIs) {
  ASSERT_NO_FATAL_FAILURE(serve_small({"--cache-ram", "0"}));
  ask(one_, "one");
  ask(two_, "two");
  EXPECT_GT(computed(ask(joined(one_, more_), "one")), 300);
}

// While nobody asks for anything the server reads the last conversations from disk.
TEST_F(Tiers, B25_TheLastSessionsAreReadAfterAStart) {
  const std::vector<std::string> flags{"-c", "4096", "-np", "2", "--cache-disk", dir_.path().string()};
  ASSERT_NO_FATAL_FAILURE(serve(flags));
  ask(one_, "one");
  ask(two_, "two");
  stop();
  ASSERT_NO_FATAL_FAILURE(serve(flags));
  const auto in_host = [&](const char* session) {
    return client().get(std::string("/v1/sessions/") + session).json()["tiers"]["host"].get<TokenPos>();
  };
  EXPECT_TRUE(eventually([&] { return in_host("one") == 700 && in_host("two") == 700; }))
      << client().get("/v1/sessions").body;
  const Json again = ask(joined(one_, more_), "one");
  EXPECT_EQ(computed(again), length(more_));
  EXPECT_EQ(source(again), "host");
  EXPECT_EQ(again["coppice"]["reason"], nullptr);
}

TEST_F(Tiers, B20_WarmAfterSigterm) {
  ASSERT_NO_FATAL_FAILURE(serve_small({"--cache-disk", dir_.path().string()}));
  const Json before = ask(one_, "one");
  stop();
  ASSERT_NO_FATAL_FAILURE(serve_small({"--cache-disk", dir_.path().string()}));
  expect_session_of_before();
  const Json after = ask(joined(one_, more_), "one");
  EXPECT_EQ(computed(after), length(more_));
  EXPECT_EQ(source(after), "disk");
  EXPECT_EQ(after["coppice"]["reason"], nullptr) << after["coppice"].dump();
}

TEST_F(Tiers, B20_WarmAfterKill9) {
  ASSERT_NO_FATAL_FAILURE(serve_small({"--cache-disk", dir_.path().string()}));
  ask(one_, "one");
  const Json flushed = client().post("/v1/cache/flush", Json::object()).json();
  EXPECT_EQ(flushed["failed"], 0) << flushed.dump();
  server().program().signal(SIGKILL);
  ASSERT_TRUE(server().program().wait(kLong).has_value());
  server_.reset();
  ASSERT_NO_FATAL_FAILURE(serve_small({"--cache-disk", dir_.path().string()}));
  expect_session_of_before();
  const Json diverging = joined(first(one_, 300), two_);
  const Json explained = client().post("/v1/explain", {{"prompt", diverging}, {"session_id", "one"}}).json();
  EXPECT_EQ(explained["reason"], "diverged") << explained.dump();
  EXPECT_EQ(explained["diverged_at"], 300);
  EXPECT_EQ(computed(ask(joined(one_, more_), "one")), length(more_));
}

// Turns that ended before the server was killed, and how old they were then.
class FinishedTurns {
 public:
  using Time = std::chrono::steady_clock::time_point;
  void add(Tokens held) { turns_.push_back({std::move(held), now()}); }
  void killed() { killed_at_ = now(); }

  // Asks the server that runs now which of them it lacks a token of, and forgets them.
  void look_for_lost(const Client& client, const Tokens& more) {
    for (const auto& [held, ended_at] : turns_) {
      const Json found = client.post("/v1/explain", {{"prompt", joined(held, more)}}).json();
      ++n_;
      if (found.at("computed") == length(more)) continue;
      ++lost_;
      oldest_lost_ = std::max(oldest_lost_, killed_at_ - ended_at);
    }
    turns_.clear();
  }
  int n() const { return n_; }
  int lost() const { return lost_; }
  double oldest_lost_ms() const { return std::chrono::duration<double, std::milli>(oldest_lost_).count(); }

 private:
  static Time now() { return std::chrono::steady_clock::now(); }
  std::vector<std::pair<Tokens, Time>> turns_;
  Time killed_at_;
  Time::duration oldest_lost_{0};
  int n_ = 0, lost_ = 0;
};

// A session's turn that ended so long before is found again. It is written behind at once; how long that takes is the
// disk's affair.
constexpr double kDurableAfter_ms = 5000;

// Killed while requests run and blocks are written; the next start must come up and answer as if nothing was cached.
// COPPICE_KILL_ROUNDS=N for more, COPPICE_KILL_MODEL=qwen35 for another family (make kill-loop).
TEST_F(Tiers, C_KilledAtAnyMoment) {
  const char* wanted = std::getenv("COPPICE_KILL_ROUNDS");
  const int rounds = wanted != nullptr ? std::atoi(wanted) : 4;
  std::mt19937 random(static_cast<unsigned>(rounds));
  const auto pick = [&](int n) { return std::uniform_int_distribution<int>(0, n - 1)(random); };
  std::vector<std::string> flags{"--cache-disk", dir_.path().string()};
  if (const char* model = std::getenv("COPPICE_KILL_MODEL")) flags.insert(flags.end(), {"-m", random_model(model)});
  long reused_from_disk = 0;
  FinishedTurns turns;
  for (int round = 0; round < rounds && !HasFailure(); ++round) {
    ASSERT_NO_FATAL_FAILURE(serve_small(flags));
    turns.look_for_lost(client(), more_);
    for (int i = 0; i < 3; ++i) {
      // One that was asked before, or one that leaves it on the way.
      Tokens prompt = random_tokens(static_cast<unsigned>(pick(4)), 600);
      if (pick(2) == 0) {
        prompt = joined(first(prompt, 200 + pick(400)), random_tokens(static_cast<unsigned>(100 + pick(1000)), 5));
      }
      const Json answer = ask(prompt, "s" + std::to_string(pick(3)));
      turns.add(held_after(prompt, answer));
      reused_from_disk += answer["coppice"]["reused_by_source"]["disk"].get<long>();
      Json cold = greedy(prompt, 8);
      cold["cache_prompt"] = false;
      cold["n_probs"] = 10;
      cold["ignore_eos"] = true;
      EXPECT_TRUE(agree(answer, client().post("/completion", cold).json())) << "round " << round;
    }
    std::atomic<bool> over = false;
    std::thread traffic([&] {
      Json body = greedy(joined(random_tokens(static_cast<unsigned>(pick(4)), 600), more_), 64);
      body["session_id"] = "last";
      client().post("/completion", body);
      over = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(pick(400)));  // any moment is a good one
    turns.killed();
    server().program().signal(SIGKILL);
    traffic.join();
    ASSERT_TRUE(over && server().program().wait(kLong).has_value());
    server_.reset();
  }
  std::printf("rounds=%d tokens_from_disk=%ld turns=%d lost=%d oldest_lost_ms=%.0f\n", rounds, reused_from_disk,
              turns.n(), turns.lost(), turns.oldest_lost_ms());
  EXPECT_LT(turns.oldest_lost_ms(), kDurableAfter_ms);
  EXPECT_GT(reused_from_disk, 0);
}

TEST_F(Tiers, B20_PoolsAreThereAgainWithoutBeingComputed) {
  ASSERT_NO_FATAL_FAILURE(serve_small({"--cache-disk", dir_.path().string()}));
  for (const char* name : {"base", "gone"}) {
    const Tokens& tokens = name == std::string("base") ? one_ : more_;
    EXPECT_EQ(client().post("/v1/pools", {{"name", name}, {"tokens", tokens}}).status, 201);
  }
  EXPECT_EQ(client().request("DELETE", "/v1/pools/gone").status, 200);
  stop();
  ASSERT_NO_FATAL_FAILURE(serve_small({"--cache-disk", dir_.path().string()}));
  ASSERT_TRUE(eventually([&] { return client().get("/v1/pools/base").status == 200; }));
  EXPECT_EQ(client().get("/v1/pools/gone").status, 404);
  EXPECT_LE(metric("coppice_prompt_tokens_computed_total"), 1.0);
  Json body = greedy(joined(one_, more_), 8);
  body["pool"] = "base";
  const Json answer = client().post("/completion", body).json();
  EXPECT_EQ(computed(answer), length(more_));
  EXPECT_EQ(source(answer), "pool");
}

TEST_F(Tiers, B20_OtherSettingsFindNothing) {
  ASSERT_NO_FATAL_FAILURE(serve_small({"--cache-disk", dir_.path().string()}));
  ask(one_, "one");
  stop();
  for (const auto& changed : std::vector<std::vector<std::string>>{{"-ctk", "q8_0"}, {"--rope-freq-base", "9000"}}) {
    std::vector<std::string> args = changed;
    args.insert(args.end(), {"--cache-disk", dir_.path().string()});
    ASSERT_NO_FATAL_FAILURE(serve_small(args));
    EXPECT_EQ(client().get("/v1/sessions").json()["data"].size(), 0U);
    const Json answer = ask(one_, "one");
    EXPECT_EQ(computed(answer), length(one_)) << changed[0];
    EXPECT_EQ(answer["coppice"]["reason"], "new");
    const std::string log = server().program().standard_error();
    const std::string differs = changed[0] == "-ctk" ? "differs=\"k: 1 -> 8\"" : "differs=\"rope: ";
    EXPECT_NE(log.find(differs), std::string::npos) << log;
    stop();
  }
}

TEST_F(Tiers, B24_KeysAreApartAfterARestartToo) {
  const std::vector<std::string> args = {"--cache-disk", dir_.path().string(), "--api-key", "alpha,beta"};
  const auto as = [&](const char* key) {
    Json body = greedy(one_, 8);
    return client().post("/completion", body, {{"Authorization", std::string("Bearer ") + key}}).json();
  };
  ASSERT_NO_FATAL_FAILURE(serve_small(args));
  as("alpha");
  Json body = greedy(joined(one_, more_), 8);  // shared by two prompts: written to the disk
  body["session_id"] = "s";
  client().post("/completion", body, {{"Authorization", "Bearer alpha"}});
  stop();
  ASSERT_NO_FATAL_FAILURE(serve_small(args));
  EXPECT_EQ(computed(as("beta")), length(one_));
  EXPECT_EQ(computed(as("alpha")), 1);
}

TEST_F(Tiers, ASecondServerOnTheFolderSaysSo) {
  ASSERT_NO_FATAL_FAILURE(serve_small({"--cache-disk", dir_.path().string()}));
  Program second({"serve", "--port", "0", "--cache-disk", dir_.path().string()});
  EXPECT_EQ(second.wait(kLong), std::optional(1));
  EXPECT_NE(second.standard_error().find(dir_.path().string()), std::string::npos) << second.standard_error();
}

TEST_F(Tiers, AFolderThatCannotBeMadeIsRefused) {
  Program program({"serve", "--port", "0", "--cache-disk", "/proc/nothing/here"});
  EXPECT_EQ(program.wait(kLong), std::optional(1));
  EXPECT_NE(program.standard_error().find("/proc/nothing/here"), std::string::npos) << program.standard_error();
}

}  // namespace
}  // namespace coppice::http_test
