#include "engine/llama_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/env_for_test.h"
#include "engine/backends.h"

namespace coppice::engine {
namespace {

using testing::HasSubstr;

ServerFlags parsed(const std::vector<std::string>& args) {
  auto config = LlamaConfig::parse(args);
  EXPECT_TRUE(config.has_value()) << (config ? "" : config.error().message);
  return config ? config->server() : ServerFlags{};
}

std::string refused(const std::vector<std::string>& args) {
  auto config = LlamaConfig::parse(args);
  EXPECT_FALSE(config.has_value());
  if (config) return {};
  EXPECT_EQ(config.error().kind, ErrorKind::invalid_request);
  return config.error().message;
}

TEST(LlamaConfig, DefaultsAreQuietAndNameNoModel) {
  const ServerFlags flags = parsed({});
  EXPECT_EQ(flags.host, "127.0.0.1");
  EXPECT_EQ(flags.port, 8080);
  EXPECT_EQ(flags.n_parallel, -1);
  EXPECT_FLOAT_EQ(flags.slot_prompt_similarity, 0.10F);
  EXPECT_EQ(flags.verbosity, 2);
  EXPECT_FALSE(flags.has_model);
}

TEST(LlamaConfig, ReadsFlagsWithTheirValues) {
  const ServerFlags flags = parsed({"-m", "x.gguf", "--port", "9", "-np", "7", "-sps", "0.5", "--api-key", "a,b", "-a",
                                    "one,two", "-n", "33", "-v", "--no-slots"});
  EXPECT_TRUE(flags.has_model);
  EXPECT_EQ(flags.port, 9);
  EXPECT_EQ(flags.n_parallel, 7);
  EXPECT_FLOAT_EQ(flags.slot_prompt_similarity, 0.5F);
  EXPECT_EQ(flags.api_keys, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(flags.aliases, (std::vector<std::string>{"one", "two"}));
  EXPECT_EQ(flags.n_predict, 33);
  EXPECT_GT(flags.verbosity, 4);
  EXPECT_FALSE(flags.endpoint_slots);
}

TEST(LlamaConfig, UnderscoresInLongNamesMeanDashes) { EXPECT_EQ(parsed({"--n_predict", "5"}).n_predict, 5); }

TEST(LlamaConfig, ReadsItsVariablesAndLetsTheCommandLineWin) {
  Env port("LLAMA_ARG_PORT", "1234");
  EXPECT_EQ(parsed({}).port, 1234);
  EXPECT_EQ(parsed({"--port", "4321"}).port, 4321);
}

TEST(LlamaConfig, SaysWhatIsWrongInsteadOfExiting) {
  EXPECT_THAT(refused({"--nonsense"}), HasSubstr("--nonsense"));
  EXPECT_THAT(refused({"-c"}), HasSubstr("-c needs a value"));
  EXPECT_THAT(refused({"-c", "many"}), HasSubstr("whole number"));
  EXPECT_THAT(refused({"-c", "4096k"}), HasSubstr("whole number"));
  EXPECT_THAT(refused({"-c", "99999999999"}), HasSubstr("whole number"));
  EXPECT_THAT(refused({"--cache-type-k", "q17"}), HasSubstr("--cache-type-k"));
  EXPECT_THAT(refused({"--draft", "3"}), HasSubstr("has been removed"));
  EXPECT_THAT(refused({"--reasoning-format", "loud"}), HasSubstr("--reasoning-format"));
}

// llama-common ends the process on these; a server that vanishes with status 0 or 1 is a surprise.
TEST(LlamaConfig, NothingExitsTheProcess) {
  for (const char* flag : {"-h", "--help", "--version", "--list-devices", "-cl", "--completion-bash"}) {
    EXPECT_THAT(refused({flag}), HasSubstr(flag));
  }
  EXPECT_THAT(refused({"--api-key-file", "/nonexistent/keys"}), HasSubstr("/nonexistent/keys"));
  EXPECT_THAT(refused({"--chat-template-file", "/nonexistent/template"}), HasSubstr("/nonexistent/template"));
  EXPECT_THAT(refused({"--chat-template", "{% for %}"}), HasSubstr("template"));
}

TEST(LlamaConfig, ABadVariableIsNamed) {
  Env bad("LLAMA_ARG_CTX_SIZE", "huge");
  EXPECT_THAT(refused({}), HasSubstr("LLAMA_ARG_CTX_SIZE"));
}

TEST(LlamaConfig, AnUnknownDeviceIsRefusedAndNoneIsKnown) {
  ASSERT_TRUE(load_backends(COPPICE_BACKEND_DIR).has_value());
  EXPECT_THAT(refused({"--device", "Quantum0"}), HasSubstr("Quantum0"));
  EXPECT_EQ(parsed({"--device", "none", "--port", "1"}).port, 1);
}

TEST(LlamaOptions, AreCompleteAndNamedOnce) {
  std::set<std::string> seen;
  for (const LlamaOption& option : llama_options()) {
    EXPECT_FALSE(option.names.empty());
    EXPECT_EQ(option.n_values > 0, !option.value_hint.empty()) << option.names.front();
    for (const std::string& name : option.names) EXPECT_TRUE(seen.insert(name).second) << name;
    for (const std::string& name : option.negations) EXPECT_TRUE(seen.insert(name).second) << name;
  }
  EXPECT_TRUE(seen.contains("--ctx-size"));
  EXPECT_TRUE(seen.contains("--no-mmap"));
  EXPECT_GT(seen.size(), 200U);
}

}  // namespace
}  // namespace coppice::engine
