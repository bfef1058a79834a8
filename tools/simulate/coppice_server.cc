#include "simulate/coppice_server.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "engine/fake_runner.h"
#include "sched/scheduler.h"

namespace coppice::simulate {
namespace {

constexpr TokenPos kStepTokens = 512;     // llama.cpp's ubatch
constexpr std::int32_t kSequences = 256;  // as many as the server has where they cost little
// Blocks of the host tier. With prompts scaled down to a thirty-second, 256 would be a large part of a prompt.
constexpr TokenPos kBlockTokens = 32;
constexpr std::int64_t kBytesPerToken = sizeof(std::uint64_t);  // what the fake runner saves

// Says what it was told to.
class Script final : public engine::Sampler {
 public:
  explicit Script(Tokens answer) : answer_(std::move(answer)) {}
  void accept_prompt(std::span<const Token>) override {}
  Token next() { return answer_.at(said_++); }

 private:
  Tokens answer_;
  std::size_t said_ = 0;
};

class TimedRunner final : public engine::Runner {
 public:
  TimedRunner(const engine::FakeRunnerOptions& options, const Costs& costs, ManualClock& clock)
      : fake_(options), costs_(costs), clock_(clock) {}

  const engine::RunnerInfo& info() const override { return fake_.info(); }
  void share(SeqId from, SeqId to, TokenPos begin, TokenPos end) override { fake_.share(from, to, begin, end); }
  bool remove(SeqId seq, TokenPos begin, TokenPos end) override { return fake_.remove(seq, begin, end); }
  void clear(SeqId seq) override { fake_.clear(seq); }
  bool can_resume(SeqId seq, TokenPos length, TokenPos at) const override { return fake_.can_resume(seq, length, at); }
  void share_cells(SeqId from, SeqId to, TokenPos end) override { fake_.share_cells(from, to, end); }
  std::vector<std::byte> save(SeqId seq, TokenPos begin, TokenPos end, engine::SaveKind kind) override {
    clock_.advance(costs_.save(end - begin));
    return fake_.save(seq, begin, end, kind);
  }
  bool restore(SeqId seq, TokenPos begin, TokenPos end, const Saved& saved) override {
    clock_.advance(costs_.restore(saved.end - saved.begin));
    return fake_.restore(seq, begin, end, saved);
  }
  engine::DecodeStatus decode(std::span<const engine::BatchItem> batch) override {
    const engine::DecodeStatus status = fake_.decode(batch);
    clock_.advance(costs_.step(static_cast<int>(batch.size()), fake_.used()));
    return status;
  }
  engine::Sampled sample(engine::Sampler& sampler, std::int32_t, const engine::ProbsOptions&) override {
    return {static_cast<Script&>(sampler).next(), 0, {}};
  }

 private:
  engine::FakeRunner fake_;
  const Costs& costs_;
  ManualClock& clock_;
};

class Sink final : public sched::EventSink {
 public:
  Sink(std::uint64_t id, const Listener& listener) : id_(id), listener_(listener) {}
  void on_delta(sched::TextDelta) override { first(); }
  void on_finished(sched::Finished finished) override {
    first();
    listener_.on_done(id_, finished.report.computed);
  }
  void on_failed(Error error) override { throw std::runtime_error("a request failed: " + error.message); }

 private:
  void first() {
    if (!std::exchange(answering_, true)) listener_.on_first(id_);
  }
  std::uint64_t id_;
  const Listener& listener_;
  bool answering_ = false;
};

class Coppice final : public Server {
 public:
  Coppice(const Room& room, const Policies& policies, const Costs& costs, ManualClock& clock, Listener listener)
      : listener_(std::move(listener)),
        tiers_(open(room, policies, clock, metrics_)),
        runner_({.n_cells = room.cells, .n_seqs = kSequences, .n_batch = kStepTokens, .n_vocab = kVocabulary}, costs,
                clock),
        scheduler_(options(room, policies, tiers_.get()), runner_, tokenizer_, clock, metrics_) {}

  void submit(Ask ask) override {
    sched::Request request;
    request.id = RequestId{ask.id};
    request.prompt = std::move(ask.prompt);
    request.n_predict = static_cast<int>(ask.answer.size());
    request.sampler = std::make_unique<Script>(std::move(ask.answer));
    request.placement.session = std::move(ask.session);
    request.sink = std::make_shared<Sink>(ask.id, listener_);
    if (const auto ok = scheduler_.check(request); !ok) throw std::runtime_error(ok.error().message);
    scheduler_.submit(std::move(request));
  }

  bool step() override { return scheduler_.step() || !scheduler_.idle(); }

 private:
  static constexpr Token kVocabulary = 1 << 20;

  static sched::SchedulerOptions options(const Room& room, const Policies& policies, tier::Tiers* tiers) {
    sched::SchedulerOptions options{.n_slots = room.slots,
                                    .queue_limit = 1U << 20U,
                                    .eviction = policies.cells,
                                    .tier = {.tiers = tiers, .fingerprint = "simulated"}};
    if (policies.overtake_limit) options.overtake_limit = *policies.overtake_limit;
    return options;
  }

  static std::unique_ptr<tier::Tiers> open(const Room& room, const Policies& policies, const Clock& clock,
                                           obs::Metrics& metrics) {
    if (room.host_tokens == 0) return nullptr;
    auto tiers = tier::Tiers::open({.host_bytes_max = static_cast<std::uint64_t>(room.host_tokens * kBytesPerToken),
                                    .disk = {},
                                    .block_tokens = kBlockTokens,
                                    .eviction = policies.host,
                                    .wake = {}},
                                   clock, metrics);
    if (!tiers) throw std::runtime_error(tiers.error().message);
    return *std::move(tiers);
  }

  Listener listener_;
  obs::Metrics metrics_;
  std::unique_ptr<tier::Tiers> tiers_;
  engine::FakeTokenizer tokenizer_{kVocabulary};
  TimedRunner runner_;
  sched::Scheduler scheduler_;
};

}  // namespace

std::unique_ptr<Server> make_coppice(const Room& room, const Policies& policies, const Costs& costs, ManualClock& clock,
                                     Listener listener) {
  return std::make_unique<Coppice>(room, policies, costs, clock, std::move(listener));
}

}  // namespace coppice::simulate
