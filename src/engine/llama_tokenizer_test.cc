#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "engine/demo_model_for_test.h"

namespace coppice::engine {
namespace {

using testing::demo;

TEST(LlamaTokenizer, ReadsAndWritesText) {
  const Tokenizer& t = *demo().tokenizer;
  for (const std::string text : {"", "a", "Hello, world!\n\n  x = {\"k\": [1, 2]}", "naïve 日本語 🙂", "\t\x01 \x7f"}) {
    EXPECT_EQ(t.text(t.tokenize(text, false, false), true), text);
  }
  EXPECT_TRUE(t.tokenize("", false, false).empty());
  EXPECT_GT(t.n_vocab(), 1000);
}

TEST(LlamaTokenizer, ReadsSpecialTokensOnlyWhenAsked) {
  const Tokenizer& t = *demo().tokenizer;
  const Tokens special = t.tokenize("<|im_end|>", false, true);
  ASSERT_EQ(special.size(), 1U);
  EXPECT_GT(t.tokenize("<|im_end|>", false, false).size(), 1U);
  EXPECT_EQ(t.piece(special[0], true), "<|im_end|>");
  EXPECT_EQ(t.piece(special[0], false), "");
  EXPECT_TRUE(t.is_end_of_generation(special[0]));
  EXPECT_FALSE(t.is_end_of_generation(t.tokenize("a", false, false).at(0)));
}

TEST(LlamaTokenizer, AnswersForTokensThatDoNotExist) {
  const Tokenizer& t = *demo().tokenizer;
  for (Token token : {-1, t.n_vocab(), t.n_vocab() + 1000, std::numeric_limits<Token>::min()}) {
    EXPECT_EQ(t.piece(token, true), "");
    EXPECT_FALSE(t.is_end_of_generation(token));
  }
}

// BUG: llama.cpp throws at bytes that encode no code point.
TEST(LlamaTokenizer, SurvivesBytesThatEncodeNoCodePoint) {
  const Tokenizer& t = *demo().tokenizer;
  for (const std::string text : {"\xF5\x80\x80\x80", "\xF4\x90\x80\x80",
                                 "a\xF7\xBF\xBF\xBF"
                                 "b",
                                 "\xFF\xFE", "\xC3"}) {
    const Tokens tokens = t.tokenize(text, true, true);
    EXPECT_FALSE(tokens.empty());
    EXPECT_NE(t.text(tokens, true).find("\uFFFD"), std::string::npos);
  }
}

TEST(LlamaTokenizer, TakesLongTextWithoutABreak) {
  const Tokenizer& t = *demo().tokenizer;
  for (char c : {'a', ' ', '1', '\n', '!'}) {
    const std::string text(100'000, c);
    EXPECT_EQ(t.text(t.tokenize(text, false, true), true), text);
  }
}

RC_GTEST_PROP(LlamaTokenizer, SurvivesAnyBytes, (const std::string& bytes, bool add_special, bool parse_special)) {
  const Tokenizer& t = *demo().tokenizer;
  for (Token token : t.tokenize(bytes, add_special, parse_special)) RC_ASSERT(token >= 0 && token < t.n_vocab());
}

RC_GTEST_PROP(LlamaTokenizer, KeepsAnyValidText, ()) {
  const auto points = *rc::gen::container<std::u32string>(rc::gen::oneOf(rc::gen::inRange<char32_t>(1, 0x80),
                                                                         rc::gen::inRange<char32_t>(0x80, 0xD800),
                                                                         rc::gen::inRange<char32_t>(0xE000, 0x110000)));
  std::string text;
  for (char32_t p : points) {
    const auto put = [&](std::uint32_t byte) { text += static_cast<char>(byte); };
    if (p < 0x80) {
      put(p);
    } else if (p < 0x800) {
      put(0xC0 | p >> 6), put(0x80 | (p & 0x3F));
    } else if (p < 0x10000) {
      put(0xE0 | p >> 12), put(0x80 | (p >> 6 & 0x3F)), put(0x80 | (p & 0x3F));
    } else {
      put(0xF0 | p >> 18), put(0x80 | (p >> 12 & 0x3F)), put(0x80 | (p >> 6 & 0x3F)), put(0x80 | (p & 0x3F));
    }
  }
  const Tokenizer& t = *demo().tokenizer;
  RC_ASSERT(t.text(t.tokenize(text, false, false), true) == text);
}

}  // namespace
}  // namespace coppice::engine
