#include "scenarios/tally.h"

#include <fmt/format.h>

#include <latch>
#include <thread>

#include "stats/summary.h"

namespace coppice::bench {

void Tally::learn(const CompletionRequest& request, const Vocabulary& vocabulary) {
  known_.add(request.prompt, vocabulary.answer, static_cast<std::size_t>(request.n_answer));
}

void Tally::add(const CompletionRequest& request, const Completion& answer, const Vocabulary& vocabulary) {
  add(answer, static_cast<std::int64_t>(
                  known_.add(request.prompt, vocabulary.answer, static_cast<std::size_t>(request.n_answer))));
}

void Tally::add(const Completion& answer, std::int64_t optimum) {
  n_optimum_ += optimum;
  if (answer.n_computed) {
    n_computed_ += *answer.n_computed;
  } else {
    all_counted_ = false;
  }
  n_answer_ += answer.n_answer;
  first_ms_.push_back(answer.first_ms);
  if (answer.n_answer > 1) {
    n_decoded_ += answer.n_answer - 1;
    decode_ms_ += answer.total_ms - answer.first_ms;
  }
}

double Tally::decode_tokens_per_s() const {
  return decode_ms_ > 0 ? static_cast<double>(n_decoded_) * 1000.0 / decode_ms_ : 0.0;
}

Episode Tally::measures() const {
  Episode all{{"first_ms_p50", Unit::ms, percentile(first_ms_, 0.5)},
              {"first_ms_max", Unit::ms, percentile(first_ms_, 1)}};
  if (all_counted_) all.push_back({"tokens_computed", Unit::tokens, static_cast<double>(n_computed_)});
  all.push_back({"tokens_optimum", Unit::tokens, static_cast<double>(n_optimum_)});
  return all;
}

CompletionRequest Conversation::ask(const Vocabulary& vocabulary, std::size_t n, int n_answer) {
  append_run(tokens, vocabulary, seed = mix(seed, n), n);
  return {.prompt = tokens, .n_answer = n_answer, .session = session, .messages = nullptr};
}

void Conversation::hear(const Vocabulary& vocabulary, int n_answer) {
  tokens.insert(tokens.end(), static_cast<std::size_t>(n_answer), vocabulary.answer);
}

Status talk(Peer& peer, Conversation& conversation, std::size_t n_fresh, int n_answer, Tally& tally, bool measured) {
  const CompletionRequest request = conversation.ask(peer.vocabulary(), n_fresh, n_answer);
  const Result<Completion> answer = peer.complete(request);
  if (!answer) return std::unexpected(answer.error());
  if (measured) {
    tally.add(request, *answer, peer.vocabulary());
  } else {
    tally.learn(request, peer.vocabulary());
  }
  conversation.hear(peer.vocabulary(), n_answer);
  return {};
}

Result<std::vector<Conversation>> begin_conversations(Peer& peer, std::string_view name, int count, std::size_t length,
                                                      int n_answer, std::uint64_t seed, Tally& tally) {
  std::vector<Conversation> all;
  for (int i = 0; i < count; ++i) {
    all.push_back({fmt::format("{}-{}-{}", name, seed, i), {}, mix(seed, static_cast<std::uint64_t>(i))});
    if (const Status s = talk(peer, all.back(), length, n_answer, tally, false); !s) return std::unexpected(s.error());
  }
  return all;
}

Result<Episode> floor_episode(Floor& floor, const FloorPoint& point) {
  const auto times = floor.measure(point);
  if (!times) return std::unexpected(times.error());
  Episode episode{{"first_ms_p50", Unit::ms, times->first_ms}};
  if (point.decode > 1) episode.push_back({"decode_tokens_per_s", Unit::tokens_per_s, times->tokens_per_s});
  return episode;
}

Result<std::vector<Completion>> complete_together(const Peer& peer, const std::vector<CompletionRequest>& requests) {
  std::vector<Result<Completion>> answers(requests.size());
  std::latch start(static_cast<std::ptrdiff_t>(requests.size()));
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      threads.emplace_back([&, i] {
        start.arrive_and_wait();
        answers[i] = peer.complete(requests[i]);
      });
    }
  }
  std::vector<Completion> all;
  for (Result<Completion>& answer : answers) {
    if (!answer) return std::unexpected(answer.error());
    all.push_back(*answer);
  }
  return all;
}

}  // namespace coppice::bench
