// Spec section C: for the same prompt, logits after any reuse equal a cold run's. Bit-identical where the same cells
// and the same batches are used; elsewhere at rounding level, and far below what any mistake does on the same model.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "cases.h"
#include "prompts.h"
#include "subject.h"

namespace coppice::oracle {
namespace {

using engine::Rewind;

struct Family {
  const char* name;  // of the model file
  Rewind rewind;

  friend void PrintTo(const Family& f, std::ostream* out) { *out << f.name; }
};

std::string model_file(const std::string& name) {
  if (name == "coppice-demo") return COPPICE_DEMO_MODEL;
  return std::string(COPPICE_BINARY_DIR) + "/models/" + name + ".gguf";
}

bool can_do(Needs needs, const engine::RunnerInfo& info) {
  switch (needs) {
    case Needs::nothing: return true;
    case Needs::rewind: return info.rewind != Rewind::never;
    case Needs::any_range: return info.rewind == Rewind::anywhere;
    case Needs::saving: return info.saves_ranges;
    case Needs::states: return info.saves_ranges && info.rewind != Rewind::anywhere;
    case Needs::cells: return info.saves_ranges && info.bytes_per_cell > 0;
  }
  return false;
}

class ReuseOracle : public ::testing::TestWithParam<Family> {
 protected:
  void SetUp() override {
    subject_ = Subject::load(model_file(GetParam().name));
    ASSERT_NE(subject_, nullptr);
    prompt_ = make_prompt(subject_->tokenizer());
    cold_ = cold(*subject_, prompt_);
  }

  // Runs the case in an empty context and prints its line of the table.
  double measure(const Case& c) {
    subject_->clear_all();
    const Logits logits = c.run(*subject_, prompt_);
    if (logits.size() != cold_.size()) {
      ADD_FAILURE() << c.name << ": " << logits.size() << " logits, cold " << cold_.size();
      return 1;
    }
    const double error = nmse(cold_, logits);
    std::printf("| %-12s | %-22s | %8.1e |\n", GetParam().name, std::string(c.name).c_str(), error);
    return error;
  }

  std::unique_ptr<Subject> subject_;
  Prompt prompt_;
  Logits cold_;
};

TEST_P(ReuseOracle, C_ReuseGivesTheLogitsOfAColdRun) {
  ASSERT_EQ(subject_->rewind(), GetParam().rewind);
  std::printf("| %-12s | %-22s | %-8s |\n", "model", "case", "nmse");
  double worst = 0;
  for (const Case& c : valid_cases()) {
    if (!can_do(c.needs, subject_->runner().info())) continue;  // ResumesWhereItSays tests what the runner says instead
    const double error = measure(c);
    EXPECT_TRUE(error == 0 || !c.exact) << c.name << ": same cells and batches, so the same bits";
    worst = std::max(worst, error);
  }
  double best = 1;
  for (const Case& c : controls()) {
    if (can_do(c.needs, subject_->runner().info())) best = std::min(best, measure(c));
  }
  std::printf("| %-12s | worst valid %.1e, best control %.1e: %.0f times |\n", GetParam().name, worst, best,
              best / worst);
  EXPECT_LT(worst, 1e-3) << "rounding level";
  EXPECT_LT(10 * worst, best) << "a mistake must show";
}

// Where a family cannot go back, the runner has to say so, and a refused cut leaves the sequence whole.
TEST_P(ReuseOracle, C_ResumesWhereItSays) {
  const SeqId a(0);
  engine::Runner& runner = subject_->runner();
  const TokenPos length = prompt_.length(), cut = prompt_.shared;
  EXPECT_TRUE(runner.can_resume(a, length, length));
  EXPECT_EQ(runner.can_resume(a, length, cut), GetParam().rewind != Rewind::never);
  if (GetParam().rewind == Rewind::never) {
    EXPECT_FALSE(runner.remove(a, cut, -1));
    const Logits first = subject_->decode(a, prompt_.foreign, length, length + 1, 1);
    subject_->clear_all();
    cold(*subject_, prompt_);
    EXPECT_EQ(subject_->decode(a, prompt_.foreign, length, length + 1, 1), first);
  }
}

// A window model forgets what lies before the window once its cells are needed for others.
class WindowOracle : public ReuseOracle {};

TEST_P(WindowOracle, C_APassedWindowIsNotResumed) {
  const SeqId a(0);
  engine::Runner& runner = subject_->runner();
  TokenPos length = prompt_.length();
  for (int round = 0; round < 24 && runner.can_resume(a, length, prompt_.shared); ++round) {
    Tokens more(static_cast<std::size_t>(length));
    more.insert(more.end(), prompt_.foreign.begin(), prompt_.foreign.begin() + 256);
    subject_->decode(a, more, length, length + 256);
    length += 256;
  }
  EXPECT_FALSE(runner.can_resume(a, length, prompt_.shared)) << "after " << length << " tokens";
  EXPECT_TRUE(runner.can_resume(a, length, length));
  EXPECT_FALSE(runner.remove(a, prompt_.shared, -1));
  // What has to be done instead: all of it again.
  runner.clear(a);
  const Logits again = cold(*subject_, prompt_);
  EXPECT_LT(nmse(cold_, again), 1e-3);
}

std::string family_name(const ::testing::TestParamInfo<Family>& family) {
  std::string name(family.param.name);
  std::erase(name, '-');
  return name;
}

constexpr Family gpt_oss{"gpt-oss", Rewind::window}, gemma3{"gemma3", Rewind::window};

INSTANTIATE_TEST_SUITE_P(Families, ReuseOracle,
                         ::testing::Values(Family{"coppice-demo", Rewind::anywhere}, Family{"qwen3", Rewind::anywhere},
                                           Family{"deepseek2", Rewind::anywhere}, gpt_oss, gemma3,
                                           Family{"qwen35", Rewind::never}, Family{"lfm2", Rewind::never},
                                           Family{"mamba2", Rewind::never}),
                         family_name);
INSTANTIATE_TEST_SUITE_P(Windows, WindowOracle, ::testing::Values(gpt_oss, gemma3), family_name);

}  // namespace
}  // namespace coppice::oracle
