#include "engine/gbnf_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace coppice::engine {
namespace {

using ::testing::HasSubstr;

std::string repeat(const std::string& text, int n) {
  std::string out;
  for (int i = 0; i < n; ++i) out += text;
  return out;
}

std::string numbered(const std::string& prefix, int i) { return prefix + std::to_string(i); }

TEST(GbnfCheck, AcceptsWhatLlamaCppAccepts) {
  const std::string accepted[] = {
      R"(root ::= "yes" | "no")",
      "root ::= \"a\"",
      "# a comment\n\nroot   ::= item+ # another\nitem ::= [a-z]",
      "root ::= (\n  \"a\" |\n  \"b\"\n)\r\nother ::= root",
      "root ::= [^\\x00-\\x1F\"\\\\] [a\\-z] [a-] [-a] [\\]] [] \"\"",
      "root ::= \"\\u00e9\\U0001F600\\t\\r\\n\\\\\\\"\"",
      "root ::= . x? y* z\nx ::= \"x\"{2} \"y\"{1,} \"z\"{0,3}\ny ::= \"q\"{2}{3}\nz ::= \"w\"{0}",
      "root ::= \"a\"{1,100000}",
      "root ::= <[42]> !<[7]> <|im_end|>",
      "root ::= \"é\" [à-ü] \"日本\"",
      "root ::= ws \"x\" ws\nws ::= ([ \\t\\n] ws)?",
      "root ::= (ws)* \"x\"\nws ::= [ ]*",
      "root ::= ((\"a\"?)*)* \"b\"",
      "root ::= \"a\" root | \"b\"",
      "root ::= | \"a\"",
      "root ::= a b\na ::= \"\"\nb ::= \"x\"",
      "root ::= \"a\"\nroot ::= \"b\"",
  };
  for (const std::string& grammar : accepted) {
    const auto result = check_gbnf(grammar, "grammar");
    EXPECT_TRUE(result.has_value()) << grammar << "\n" << result.error().message;
  }
}

TEST(GbnfCheck, RefusesWhatDoesNotCompileAndSaysWhy) {
  const std::pair<std::string, std::string> refused[] = {
      {"", "empty"},
      {"   # only a comment", "empty"},
      {"start ::= \"a\"", "no rule named 'root'"},
      {"root ::= missing", "'missing'"},
      {"root ::= \"a\nb", "not closed"},
      {"root ::= [a-", "not closed"},
      {"root ::= (\"a\"", "expected ')'"},
      {"root ::= \"a\")", "end of the line"},
      {"root ::= *", "nothing before it"},
      {"root ::= \"\"*", "nothing before it"},
      {"root ::= \"a\"{}", "number"},
      {"root ::= \"a\"{1;2}", "expected '}'"},
      {"root ::= \"\\q\"", "escape"},
      {"root ::= \"\\x1\"", "hexadecimal"},
      {"root = \"a\"", "::="},
      {"root ::= \"a\"\n\nx ::= \"b\" ]", "line 3"},
      {"root ::= <[1]", "expected '>'"},
      {std::string("root ::= \"a\0b\"", 14), "NUL"},
  };
  for (const auto& [grammar, reason] : refused) {
    const auto result = check_gbnf(grammar, "grammar");
    ASSERT_FALSE(result.has_value()) << grammar;
    EXPECT_EQ(result.error().kind, ErrorKind::invalid_request);
    EXPECT_EQ(result.error().param, "grammar");
    EXPECT_THAT(result.error().message, HasSubstr(reason)) << grammar;
  }
}

// Each of these makes llama.cpp v0.4.0 hang, run out of memory or stack, or abort.
TEST(GbnfCheck, RefusesWhatLlamaCppDoesNotSurvive) {
  std::string paths = "root ::= r0\n", chain = "root ::= r0\n", chained = "root ::= r3\nr0 ::= \"\" | \"x\"\n";
  for (int i = 0; i < 60; ++i) {
    paths += numbered("r", i) + " ::= " + numbered("r", i + 1) + " | " + numbered("r", i + 1) + "\n";
  }
  paths += "r60 ::= \"a\"";
  for (int i = 0; i < 20000; ++i) chain += numbered("r", i) + " ::= " + numbered("r", i + 1) + "\n";
  chain += "r20000 ::= \"a\"";
  for (int i = 1; i < 4; ++i) chained += numbered("r", i) + " ::= \"\" | " + numbered("r", i - 1) + "{0,1999}\n";

  const std::pair<std::string, std::string> refused[] = {
      {"%llguidance {}\nstart: \"a\"", "llguidance"},
      {"root ::= \"a\"{3,1}", "upper bound"},
      {"root ::= \"a\"{3000}", "2000"},
      {"root ::= \"a\"{99999999999999999999}", "2000"},
      {"root ::= " + repeat("(", 100000) + "\"a\"", "nested"},
      {"root ::= " + repeat("([a]{0,1999} [b]{0,1999}) ", 2000), "too large"},
      {std::string(5 << 20, ' '), "4 MiB"},
      {"root ::= root \"a\" | \"b\"", "left-recursive"},
      {"root ::= a\na ::= b\nb ::= a | \"x\"", "left-recursive"},
      {paths, "too many ways"},
      {chain, "too many ways"},
      {chained, "too many ways"},
      {"root ::= y root\ny ::= z\nz ::= \"\"", "never match"},
      {"root ::= y root \"a\" | \"b\"\ny ::= z\nz ::= \"\"", "left-recursive behind"},
  };
  for (const auto& [grammar, reason] : refused) {
    const auto result = check_gbnf(grammar, "grammar");
    ASSERT_FALSE(result.has_value()) << grammar.substr(0, 200);
    EXPECT_THAT(result.error().message, HasSubstr(reason)) << grammar.substr(0, 200);
  }
}

// llama.cpp would take this one, as the recursion comes last; it is refused with its dangerous relatives.
TEST(GbnfCheck, RefusesMutualRecursionBehindEmptyRules) {
  const auto result = check_gbnf("root ::= w a\na ::= w b\nb ::= w a | \"x\"\nw ::= [ ]*", "grammar");
  ASSERT_FALSE(result.has_value());
  EXPECT_THAT(result.error().message, HasSubstr("left-recursive behind"));
}

}  // namespace
}  // namespace coppice::engine
