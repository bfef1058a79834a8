// Spec section C: with the built-in model the greedy text after any reuse is that of a cold run, which is the right
// answer. The prompts are of the kinds that models/demo/README.md lists and pass on a cold cache.
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "subject.h"

namespace coppice::oracle {
namespace {

constexpr std::string_view facts =
    "<|im_start|>system\nAnswer briefly.\nThe code of Zorbin is 48213. The code of Velmin is KX-77. The room of Zorbin "
    "is "
    "12.\nmax_depth: 64\nmax_width: 9\nsail_limit: KTR-906\nIn the cellar: lamps 14, ropes 250.<|im_end|>\n";

constexpr std::string_view agent =
    "<|im_start|>system\nYou are a careful agent. Use the facts and the tools.\n"
    "Tools, one JSON object a line; call one with JSON in tool_call tags:\n"
    "{\"name\": \"list_files\", \"arguments\": {\"path\": \"string\"}}\n"
    "{\"name\": \"read_file\", \"arguments\": {\"path\": \"string\"}}\n"
    "{\"name\": \"search\", \"arguments\": {\"query\": \"string\"}}<|im_end|>\n";

constexpr std::string_view listed =
    "<|im_start|>user\nRead the file about budget in the folder forest.<|im_end|>\n"
    "<|im_start|>assistant\n<tool_call>\n{\"name\": \"list_files\", \"arguments\": {\"path\": "
    "\"forest\"}}\n</tool_call>"
    "<|im_end|>\n<|im_start|>tool\ndraft.md\nbudget.txt\nsignal.csv";

struct Question {
  const char* name;
  std::string_view base;  // what the prompt begins with and others share
  std::string turn;       // from the next "<|im_start|>" on
  std::string_view answer;

  friend void PrintTo(const Question& q, std::ostream* out) { *out << q.name; }
};

std::string user(std::string_view text) { return "<|im_start|>user\n" + std::string(text); }

const std::vector<Question>& questions() {
  static const std::vector<Question> all = {
      {"fact", facts, user("What is the code of Velmin?"), "The code of Velmin is KX-77."},
      {"setting", facts, user("What is sail_limit set to?"), "sail_limit: KTR-906"},
      {"stock", facts, user("How many ropes are in the cellar?"), "In the cellar: ropes 250."},
      {"unknown", facts, user("What is the code of Tirgan?"), "I do not know."},
      {"call", agent, user("Read the file notes/lamp.md."),
       "<tool_call>\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"notes/lamp.md\"}}\n</tool_call>"},
      {"chain", agent, std::string(listed),
       "<tool_call>\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"forest/budget.txt\"}}\n</tool_call>"},
  };
  return all;
}

class GreedyText : public ::testing::TestWithParam<Question> {
 protected:
  void SetUp() override {
    subject_ = Subject::load(COPPICE_DEMO_MODEL);
    ASSERT_NE(subject_, nullptr);
    base_ = tokens(std::string(GetParam().base));
    prompt_ = tokens(std::string(GetParam().base) + GetParam().turn + "<|im_end|>\n<|im_start|>assistant\n");
    ASSERT_TRUE(std::equal(base_.begin(), base_.end(), prompt_.begin()));
  }

  Tokens tokens(const std::string& text) const { return subject_->tokenizer().tokenize(text, true, true); }
  TokenPos base_length() const { return static_cast<TokenPos>(base_.size()); }

  // Evaluates the prompt from `begin` on and takes the most likely token until the turn ends.
  std::string answer(SeqId seq, TokenPos begin, TokenPos chunk = 512) {
    Tokens all = prompt_;
    TokenPos from = begin;
    while (all.size() < prompt_.size() + 64) {
      const auto length = static_cast<TokenPos>(all.size());
      const Logits logits = subject_->decode(seq, all, from, length, 1, chunk);
      if (::testing::Test::HasFatalFailure() || logits.empty()) return "";
      const auto best = static_cast<Token>(std::ranges::max_element(logits) - logits.begin());
      if (subject_->tokenizer().is_end_of_generation(best)) break;
      all.push_back(best);
      from = length;
    }
    return subject_->tokenizer().text(Tokens(all.begin() + static_cast<std::ptrdiff_t>(prompt_.size()), all.end()),
                                      true);
  }

  // A conversation over the same base that goes on differently, 40 tokens longer than the base.
  void another_turn(SeqId seq) {
    Tokens other = base_;
    const Tokens turn =
        tokens(user("Remember: The key of Tavley is falcon 9. By the way: The badge of Monsta is QRX-5150. "
                    "What is the desk of Grimi? Tell me the team of Lodwen."));
    other.insert(other.end(), turn.begin(), turn.begin() + 40);
    subject_->decode(seq, other, 0, base_length() + 40);
  }

  std::unique_ptr<Subject> subject_;
  Tokens base_, prompt_;
  const SeqId a_{0}, b_{1}, c_{2};
};

TEST_P(GreedyText, C_ColdAnswerIsRight) { EXPECT_EQ(answer(a_, 0), GetParam().answer); }

TEST_P(GreedyText, C_SameInSmallChunks) { EXPECT_EQ(answer(a_, 0, 9), GetParam().answer); }

TEST_P(GreedyText, C_SameFromADonorsPrefix) {
  another_turn(a_);
  subject_->share(a_, b_, 0, base_length());
  EXPECT_EQ(answer(b_, base_length()), GetParam().answer);
  subject_->share(a_, c_, 0, base_length());
  EXPECT_EQ(answer(c_, base_length()), GetParam().answer) << "a second fork, while the first one's tokens are there";
}

TEST_P(GreedyText, C_SameAfterTheDonorIsGone) {
  another_turn(a_);
  subject_->share(a_, b_, 0, base_length());
  subject_->runner().clear(a_);
  another_turn(c_);  // takes the freed cells
  EXPECT_EQ(answer(b_, base_length()), GetParam().answer);
}

TEST_P(GreedyText, C_SameAfterATailWasCutOff) {
  another_turn(a_);
  ASSERT_TRUE(subject_->remove(a_, base_length(), -1));
  EXPECT_EQ(answer(a_, base_length()), GetParam().answer);
}

// The negative control: what the tests above would say if the prefix were lost.
class GreedyControl : public GreedyText {};

TEST_P(GreedyControl, C_AnotherPrefixGivesAnotherAnswer) {
  Tokens other = base_;
  std::ranges::reverse(other);
  subject_->decode(a_, other, 0, base_length());
  EXPECT_NE(answer(a_, base_length()), GetParam().answer);
}

std::string question_name(const ::testing::TestParamInfo<Question>& question) { return question.param.name; }

INSTANTIATE_TEST_SUITE_P(Prompts, GreedyText, ::testing::ValuesIn(questions()), question_name);
INSTANTIATE_TEST_SUITE_P(Facts, GreedyControl, ::testing::Values(questions()[0], questions()[1], questions()[2]),
                         question_name);

}  // namespace
}  // namespace coppice::oracle
