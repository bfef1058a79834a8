#include "app/llama_rulings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "app/own_flags.h"
#include "base/env_for_test.h"
#include "engine/llama_config.h"

namespace coppice::app {
namespace {

using testing::HasSubstr;

std::set<std::string_view> named_in_table() {
  std::set<std::string_view> names;
  for (const Ruling& ruling : llama_rulings()) names.insert(ruling.options.begin(), ruling.options.end());
  return names;
}

// A new llama.cpp version that brings a flag fails here until someone decides what Coppice makes of it.
TEST(LlamaRulings, EveryServerFlagIsRuledOn) {
  const auto named = named_in_table();
  for (const engine::LlamaOption& option : engine::llama_options()) {
    EXPECT_TRUE(named.contains(option.names.front())) << option.names.front() << ": " << option.help;
    if (option.negations.empty()) continue;
    const Ruling* positive = find_ruling(option.names.front());
    ASSERT_NE(positive, nullptr) << option.names.front();
    // Refusing or ignoring a switch says nothing of its opposite.
    const bool own = named.contains(option.negations.front());
    const bool decided = own || positive->fate == Fate::kept || positive->reason.starts_with("the log has one format");
    EXPECT_TRUE(decided) << option.negations.front();
  }
}

TEST(LlamaRulings, TheTableNamesOnlyWhatExistsAndOnce) {
  std::set<std::string_view> known;
  for (const engine::LlamaOption& option : engine::llama_options()) {
    known.insert(option.names.front());
    if (!option.negations.empty()) known.insert(option.negations.front());
  }
  std::set<std::string_view> seen;
  for (const Ruling& ruling : llama_rulings()) {
    const bool speaks = ruling.fate == Fate::ignored || ruling.fate == Fate::refused;
    EXPECT_EQ(speaks, !ruling.reason.empty()) << ruling.options.front();
    for (std::string_view name : ruling.options) {
      EXPECT_TRUE(known.contains(name)) << name << " is unknown to this llama.cpp version";
      EXPECT_TRUE(seen.insert(name).second) << name << " is ruled on twice";
    }
  }
}

TEST(LlamaRulings, WhatTheTableCallsOursExists) {
  for (const Ruling& ruling : llama_rulings()) {
    if (ruling.fate != Fate::ours) continue;
    for (std::string_view name : ruling.options) EXPECT_NE(find_own_flag(name), nullptr) << name;
  }
}

TEST(LlamaRulings, KeptFlagsPassOn) {
  for (const char* name :
       {"-m", "--model", "-c", "--ctx-size", "-ngl", "--temp", "--no-mmap", "--chat_template_file"}) {
    auto verdict = judge(name, "x");
    ASSERT_TRUE(verdict.has_value()) << name;
    EXPECT_TRUE(verdict->pass_on) << name;
    EXPECT_TRUE(verdict->note.empty()) << name;
  }
}

TEST(LlamaRulings, HarmlessOnesAreNoted) {
  for (const char* name :
       {"--no-webui", "--cont-batching", "-kvu", "--kv-unified", "--no-context-shift", "--no-mmproj"}) {
    auto verdict = judge(name, "");
    ASSERT_TRUE(verdict.has_value()) << name;
    EXPECT_FALSE(verdict->pass_on) << name;
    EXPECT_THAT(verdict->note, HasSubstr(name));
  }
}

TEST(LlamaRulings, RefusalsNameTheFlagAndSayWhatToDoInstead) {
  for (const char* name : {"--context-shift", "--no-kv-unified", "-no-kvu", "--cache-reuse", "--embeddings", "--mmproj",
                           "--model-draft", "-md", "--ssl-key-file", "--slot-save-path", "--models-dir", "--webui",
                           "--no-cont-batching", "--spec-type", "--tools", "--ctx-checkpoints"}) {
    auto verdict = judge(name, "1");
    ASSERT_FALSE(verdict.has_value()) << name;
    EXPECT_EQ(verdict.error().kind, ErrorKind::invalid_request);
    EXPECT_THAT(verdict.error().message, testing::StartsWith(std::string(name) + ": ")) << name;
    EXPECT_GT(verdict.error().message.size(), 30U);
  }
  EXPECT_FALSE(judge("--no-such-flag", "").has_value());
}

TEST(LlamaRulings, TurningSomethingOffIsNoReasonToRefuse) {
  EXPECT_TRUE(judge("--cache-reuse", "0").has_value());
  EXPECT_TRUE(judge("--spec-type", "none").has_value());
  EXPECT_TRUE(judge("--sleep-idle-seconds", "-1").has_value());
  EXPECT_TRUE(judge("--pooling", "none").has_value());
}

TEST(LlamaRulings, VariablesAreJudgedLikeFlags) {
  EXPECT_TRUE(judge_environment().has_value());
  {
    Env refused("LLAMA_ARG_CONTEXT_SHIFT", "1");
    auto notes = judge_environment();
    ASSERT_FALSE(notes.has_value());
    EXPECT_THAT(notes.error().message, HasSubstr("LLAMA_ARG_CONTEXT_SHIFT"));
  }
  {
    Env off("LLAMA_ARG_CONTEXT_SHIFT", "0");
    EXPECT_TRUE(judge_environment().has_value());
  }
  {
    Env negated("LLAMA_ARG_NO_KV_UNIFIED", "1");
    EXPECT_FALSE(judge_environment().has_value());
  }
  {
    Env switched_off("LLAMA_ARG_EMBEDDINGS", "0");
    EXPECT_TRUE(judge_environment().has_value());
  }
  {
    Env noted("LLAMA_ARG_UI", "0");
    auto notes = judge_environment();
    ASSERT_TRUE(notes.has_value());
    ASSERT_EQ(notes->size(), 1U);
    EXPECT_THAT(notes->front(), HasSubstr("LLAMA_ARG_UI"));
  }
  {
    Env ours("LLAMA_ARG_CACHE_RAM", "8192");
    EXPECT_FALSE(judge_environment().has_value()) << "as --cache-ram 8192 is";
  }
  {
    Env kept("LLAMA_ARG_CTX_SIZE", "1024");
    auto notes = judge_environment();
    ASSERT_TRUE(notes.has_value());
    EXPECT_TRUE(notes->empty());
  }
}

}  // namespace
}  // namespace coppice::app
