// Models of every family, and whether an answer after reuse is the one of a cold run. The models have random weights,
// so a token may be a near tie; logprobs are compared, and a changed token of the reused prefix shows how far a mistake
// would move them.
#pragma once

#include <cmath>
#include <map>

#include "support.h"

namespace coppice::http_test {

struct Family {
  const char* name;
  bool can_rewind;
};

inline void PrintTo(const Family& f, std::ostream* out) { *out << f.name; }

inline constexpr double kRounding = 0.05;  // of a logprob, with keys and values in 16 bits; measured: up to 0.013

class FamilyTest : public ServerTest, public ::testing::WithParamInterface<Family> {
 protected:
  void serve_family(std::vector<std::string> more) {
    more.insert(more.end(), {"-m", random_model(GetParam().name)});
    serve(std::move(more));
  }

  Json ask(const Tokens& prompt, Json more) const {
    more.update(greedy(prompt, 6));
    more["n_probs"] = 10;
    more["ignore_eos"] = true;
    return client().ask("/completion", more);
  }
  Json cold(const Tokens& prompt) const { return ask(prompt, {{"cache_prompt", false}, {"id_slot", 0}}); }

  // The largest difference of the logprobs that both give for the first token. Infinite if they have few in common.
  static double difference(const Json& a, const Json& b) {
    const auto logprobs = [](const Json& answer) {
      std::map<Token, double> out;
      for (const Json& entry : answer.at("completion_probabilities").at(0).at("top_logprobs")) {
        out[entry.at("id")] = entry.at("logprob");
      }
      return out;
    };
    const auto of_a = logprobs(a), of_b = logprobs(b);
    double most = 0;
    int both = 0;
    for (const auto& [token, logprob] : of_a) {
      if (!of_b.contains(token)) continue;
      ++both;
      most = std::max(most, std::abs(logprob - of_b.at(token)));
    }
    return both >= 3 ? most : HUGE_VAL;
  }

  void expect_as_cold(const Json& answer, const Tokens& prompt) const {
    const Json reference = cold(prompt);
    Tokens wrong = prompt;
    wrong[wrong.size() - 60] ^= 1;  // within the reused part, and within the sliding window
    const double reused = difference(answer, reference), control = difference(cold(wrong), reference);
    EXPECT_LT(reused, kRounding);
    EXPECT_LT(3 * reused, control);
    EXPECT_EQ(answer["tokens"][0], reference["tokens"][0]);
  }
};

inline std::string family_name(const ::testing::TestParamInfo<Family>& f) {
  std::string name = f.param.name;
  std::erase(name, '-');
  return name;
}

}  // namespace coppice::http_test
