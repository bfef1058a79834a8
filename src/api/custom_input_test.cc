#include "api/custom_input.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "api/responses_tools.h"

namespace coppice::api {
namespace {

// The text after each byte, joined by bars where it grew.
std::string grown(std::string_view arguments) {
  CustomInput input;
  std::string out;
  for (const char c : arguments) {
    if (const std::string more = input.feed({&c, 1}); !more.empty()) out += more + "|";
  }
  return out;
}

TEST(CustomInput, TextComesByteByByte) { EXPECT_EQ(grown(R"({"input":"ab c"})"), "a|b| |c|"); }

TEST(CustomInput, BlanksAroundTheKeyAreAllowed) {
  EXPECT_EQ(grown("\n{ \"input\" :\t\"x y\" }"), "x| |y|");
  EXPECT_EQ(grown(R"({"inp ut":"x"})"), "") << "but not in it";
}

TEST(CustomInput, AnEscapeIsGivenOutWhole) {
  EXPECT_EQ(grown(R"({"input":"a\n\"\\\/b"})"), "a|\n|\"|\\|/|b|");
  EXPECT_EQ(grown(R"({"input":"\u00e9\ud834\udd1e."})"), "é|𝄞|.|");
}

TEST(CustomInput, OtherArgumentsAreNotReadable) {
  for (const char* arguments : {R"({"text":"a"})", R"(["a"])", R"({"input":7})", "plain", "{}"}) {
    CustomInput input;
    EXPECT_EQ(input.feed(arguments), "") << arguments;
    EXPECT_FALSE(input.readable()) << arguments;
  }
}

TEST(CustomInput, WhatIsCutShortIsReadAsFarAsItGoes) {
  CustomInput input;
  input.feed(R"({"input":"abc\u00)");
  EXPECT_TRUE(input.readable());
  EXPECT_EQ(input.text(), "abc");
}

TEST(CustomInput, NothingIsAddedBehindABrokenEscapeOrTheEnd) {
  EXPECT_EQ(grown(R"({"input":"a\qb"})"), "a|");
  EXPECT_EQ(grown(R"({"input":"a\ud834xxxxxx b"})"), "a|");
  EXPECT_EQ(grown(R"({"input":"a","more":"b"})"), "a|");
}

RC_GTEST_PROP(CustomInput, ReadsWhateverCanBeWritten, (const std::string& bytes)) {
  std::string text;
  for (const char c : bytes) text += static_cast<char>(c & 0x7F);
  CustomInput input;
  RC_ASSERT(input.feed(custom_arguments(text)) == text);
  RC_ASSERT(input.readable());
}

}  // namespace
}  // namespace coppice::api
