// Adds up what the answers of an episode say, next to what an infinite cache would have had to compute.
//
// Threading: none; answers of concurrent requests are added after they have ended, in the order they were sent.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "peers/peer.h"
#include "scenarios/scenario.h"
#include "stats/prefix_set.h"

namespace coppice::bench {

class Tally {
 public:
  // Counts a measured request.
  void add(const CompletionRequest& request, const Completion& answer, const Vocabulary& vocabulary);
  // One of which it is known what it had to compute.
  void add(const Completion& answer, std::int64_t optimum);
  // One that only prepares.
  void learn(const CompletionRequest& request, const Vocabulary& vocabulary);

  std::int64_t n_answer() const { return n_answer_; }
  const std::vector<double>& first_ms() const { return first_ms_; }

  // first_ms_p50 and _max, tokens_computed (if the server gave all its counts), tokens_optimum.
  Episode measures() const;
  double decode_tokens_per_s() const;  // of single streams; 0 if no answer had two tokens

 private:
  PrefixSet known_;
  std::vector<double> first_ms_;
  double decode_ms_ = 0;
  std::int64_t n_decoded_ = 0, n_answer_ = 0, n_computed_ = 0, n_optimum_ = 0;
  bool all_counted_ = true;
};

// A conversation whose prompt grows: what was sent, the answer, something new.
struct Conversation {
  std::string session;
  Tokens tokens;
  std::uint64_t seed = 0;  // of what is new next

  // Appends `n` new tokens and returns the request for the next answer.
  CompletionRequest ask(const Vocabulary& vocabulary, std::size_t n, int n_answer);
  // The answer stands in the next prompt.
  void hear(const Vocabulary& vocabulary, int n_answer);
};

// Sends it, and adds the answer (or, with `measured` false, only what is known now).
Status talk(Peer& peer, Conversation& conversation, std::size_t n_fresh, int n_answer, Tally& tally,
            bool measured = true);

// All at once, each on a thread of its own; the answers in the order of the requests. The first error ends it.
// So many conversations with a first prompt of `length` tokens and an answer, which only prepare. `name` and the seed
// make their sessions and their tokens.
Result<std::vector<Conversation>> begin_conversations(Peer& peer, std::string_view name, int count, std::size_t length,
                                                      int n_answer, std::uint64_t seed, Tally& tally);

// The floor of one stream: first_ms_p50, and decode_tokens_per_s if more than one token is decoded.
Result<Episode> floor_episode(Floor& floor, const FloorPoint& point);

Result<std::vector<Completion>> complete_together(const Peer& peer, const std::vector<CompletionRequest>& requests);

}  // namespace coppice::bench
