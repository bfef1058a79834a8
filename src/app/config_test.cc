#include "app/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "app/own_flags.h"
#include "base/env_for_test.h"

namespace coppice::app {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Command parsed(const std::vector<std::string>& args) {
  auto command = parse_serve(args);
  EXPECT_TRUE(command.has_value()) << (command ? "" : command.error().message);
  return command ? *command : Command{};
}

std::string refused(const std::vector<std::string>& args) {
  auto command = parse_serve(args);
  EXPECT_FALSE(command.has_value());
  return command ? std::string{} : command.error().message;
}

// Through llama-common's parser and complete(), as the program does.
Result<Config> completed(const std::vector<std::string>& args) {
  auto command = parse_serve(args);
  if (!command) return std::unexpected(command.error());
  auto llama = engine::LlamaConfig::parse(command->llama_args);
  if (!llama) return std::unexpected(llama.error());
  if (auto done = complete(command->config, llama->server()); !done) return std::unexpected(done.error());
  return command->config;
}

TEST(Config, DefaultsAreThoseOfTheHelp) {
  auto config = completed({});
  ASSERT_TRUE(config.has_value());
  EXPECT_EQ(config->host, "127.0.0.1");
  EXPECT_EQ(config->port, 8080);
  EXPECT_EQ(config->n_slots, 4);
  EXPECT_FLOAT_EQ(config->slot_prompt_similarity, 0.10F);
  EXPECT_EQ(config->queue_limit, 512U);
  EXPECT_EQ(config->body_bytes_max, 64U << 20);
  EXPECT_EQ(config->stream_buffer_bytes_max, 4U << 20);
  EXPECT_TRUE(config->endpoint_metrics);
  EXPECT_TRUE(config->built_in_model);
  EXPECT_EQ(config->log_level, "info");
  // Each default that the table prints is what parsing it gives.
  Command again;
  for (const OwnFlag& flag : own_flags()) {
    if (!flag.takes_value() || flag.default_text == "-ub" || flag.default_text.contains("of RAM")) continue;
    EXPECT_TRUE(flag.apply(again, flag.default_text, true).has_value()) << flag.names.front();
  }
  const Config fresh;
  EXPECT_EQ(again.config.queue_limit, fresh.queue_limit);
  EXPECT_EQ(again.config.connections_max, fresh.connections_max);
  EXPECT_EQ(again.config.body_bytes_max, fresh.body_bytes_max);
  EXPECT_EQ(again.config.stream_buffer_bytes_max, fresh.stream_buffer_bytes_max);
  EXPECT_EQ(again.config.turn_memory_bytes_max, fresh.turn_memory_bytes_max);
  EXPECT_EQ(again.config.response_store_bytes_max, fresh.response_store_bytes_max);
  EXPECT_EQ(again.config.shutdown_grace_s, fresh.shutdown_grace_s);
  EXPECT_EQ(again.config.log_level, fresh.log_level);
}

TEST(Config, SplitsOursFromLlamas) {
  const Command command = parsed({"-m",
                                  "x.gguf",
                                  "--queue-limit",
                                  "7",
                                  "-c",
                                  "4096",
                                  "--no-metrics",
                                  "--prefill-chunk=64",
                                  "--body-limit",
                                  "1MiB",
                                  "--temp=0.5",
                                  "--shutdown_grace",
                                  "9",
                                  "--log-level",
                                  "warn",
                                  "--no-session-inference",
                                  "--overtake-limit",
                                  "3",
                                  "--turn-memory",
                                  "0",
                                  "--response-store",
                                  "2GiB"});
  EXPECT_EQ(command.config.turn_memory_bytes_max, 0U);
  EXPECT_EQ(command.config.response_store_bytes_max, std::size_t{2} << 30U);
  EXPECT_FALSE(command.config.session_inference);
  EXPECT_THAT(command.llama_args, ElementsAre("-m", "x.gguf", "-c", "4096", "--temp", "0.5"));
  EXPECT_EQ(command.config.queue_limit, 7U);
  EXPECT_EQ(command.config.overtake_limit, 3);
  EXPECT_EQ(command.config.prefill_chunk, 64);
  EXPECT_EQ(command.config.body_bytes_max, 1U << 20);
  EXPECT_EQ(command.config.shutdown_grace_s, 9);
  EXPECT_EQ(command.config.log_level, "warn");
  EXPECT_FALSE(command.config.endpoint_metrics);
}

TEST(Config, AValueThatLooksLikeAFlagStaysAValue) {
  const Command command = parsed({"--grammar", "--queue-limit", "-a", "--x=y"});
  EXPECT_THAT(command.llama_args, ElementsAre("--grammar", "--queue-limit", "-a", "--x=y"));
  EXPECT_EQ(command.config.queue_limit, 512U);
}

TEST(Config, MistakesAreNamed) {
  EXPECT_THAT(refused({"--nonsense"}), HasSubstr("--nonsense"));
  EXPECT_THAT(refused({"model.gguf"}), HasSubstr("-m FILE"));
  EXPECT_THAT(refused({"--queue-limit"}), HasSubstr("--queue-limit needs a value"));
  EXPECT_THAT(refused({"--queue-limit", "many"}), HasSubstr("--queue-limit: 'many'"));
  EXPECT_THAT(refused({"--prefill-chunk", "0"}), HasSubstr("--prefill-chunk"));
  EXPECT_THAT(refused({"--body-limit", "3 pounds"}), HasSubstr("512MiB"));
  EXPECT_THAT(refused({"--log-level", "loud"}), HasSubstr("debug, info, warn, error"));
  EXPECT_THAT(refused({"-m"}), HasSubstr("-m needs a value"));
  EXPECT_THAT(refused({"--cache-ram", "much"}), HasSubstr("512MiB"));
  EXPECT_THAT(refused({"--cache-ram", "8192"}), HasSubstr("8192MiB")) << "as llama-server has it";
  EXPECT_THAT(refused({"--context-shift"}), HasSubstr("--context-shift: "));
  const Command cached = parsed({"-cram", "2GiB", "--cache-disk", "/cache", "--cache-disk-size", "1TiB"});
  EXPECT_EQ(cached.llama_args.size(), 0U);
  EXPECT_EQ(cached.config.cache_ram_bytes, std::uint64_t{2} << 30U);
  EXPECT_EQ(cached.config.cache_disk, "/cache");
  EXPECT_EQ(cached.config.cache_disk_bytes_max, std::uint64_t{1} << 40U);
}

TEST(Config, FlagsWithoutEffectLeaveANote) {
  const Command command = parsed({"--no-webui", "-cb", "-kvu"});
  EXPECT_EQ(command.notes.size(), 3U);
  EXPECT_TRUE(command.llama_args.empty());
}

TEST(Config, HelpWinsOverMistakesAfterIt) {
  EXPECT_EQ(parsed({"--help", "--nonsense"}).action, Action::help);
  EXPECT_EQ(parsed({"-h"}).action, Action::help);
  EXPECT_EQ(parsed({"--help-llama"}).action, Action::help_llama);
  EXPECT_EQ(parsed({"--version"}).action, Action::version);
  EXPECT_EQ(parsed({"--list-devices"}).action, Action::list_devices);
}

TEST(Config, VariablesFillInAndTheCommandLineWins) {
  Env queue("COPPICE_QUEUE_LIMIT", "3");
  Env metrics("COPPICE_METRICS", "0");
  EXPECT_EQ(parsed({}).config.queue_limit, 3U);
  EXPECT_FALSE(parsed({}).config.endpoint_metrics);
  EXPECT_EQ(parsed({"--queue-limit", "5"}).config.queue_limit, 5U);
  EXPECT_TRUE(parsed({"--metrics"}).config.endpoint_metrics);
}

TEST(Config, ABadVariableIsNamed) {
  Env queue("COPPICE_QUEUE_LIMIT", "x");
  EXPECT_THAT(refused({}), HasSubstr("COPPICE_QUEUE_LIMIT"));
}

TEST(Config, LlamaServersVariablesStillWork) {
  Env host("LLAMA_ARG_HOST", "127.0.0.2");
  Env port("LLAMA_ARG_PORT", "1");
  auto config = completed({"-np", "9"});
  ASSERT_TRUE(config.has_value());
  EXPECT_EQ(config->host, "127.0.0.2");
  EXPECT_EQ(config->port, 1);
  EXPECT_EQ(config->n_slots, 9);
}

TEST(Config, RangesAreChecked) {
  EXPECT_FALSE(completed({"--port", "70000"}).has_value());
  EXPECT_FALSE(completed({"--port", "-1"}).has_value());
  EXPECT_FALSE(completed({"-np", "257"}).has_value());
  EXPECT_FALSE(completed({"-sps", "1.5"}).has_value());
  EXPECT_FALSE(completed({"-sps", "nan"}).has_value());
  EXPECT_FALSE(completed({"--host", "/tmp/x.sock"}).has_value());
}

TEST(Config, SequencesAreAtLeastTheSlots) {
  EXPECT_EQ(completed({})->n_sequences, 0);
  EXPECT_EQ(completed({"-np", "8", "--sequences", "8"})->n_sequences, 8);
  EXPECT_EQ(completed({"--sequences", "256"})->n_sequences, 256);
  EXPECT_EQ(completed({"-np", "8", "--sequences", "0"})->n_sequences, 0);
  EXPECT_FALSE(completed({"--sequences", "257"}).has_value());
  EXPECT_FALSE(completed({"--sequences", "-1"}).has_value());
  const auto few = completed({"-np", "8", "--sequences", "7"});
  ASSERT_FALSE(few.has_value());
  EXPECT_THAT(few.error().message, HasSubstr("less than the 8 slots"));
}

TEST(Config, APoolFileIsNamed) {
  EXPECT_EQ(parsed({}).config.pool_file, "");
  EXPECT_EQ(parsed({"--pool", "a.json"}).config.pool_file, "a.json");
  Env pool("COPPICE_POOL", "b.json");
  EXPECT_EQ(parsed({}).config.pool_file, "b.json");
}

TEST(Config, OtherMachinesNeedAKey) {
  auto open = completed({"--host", "0.0.0.0"});
  ASSERT_FALSE(open.has_value());
  EXPECT_THAT(open.error().message, HasSubstr("--api-key"));
  EXPECT_THAT(open.error().message, HasSubstr("--allow-no-key"));
  EXPECT_TRUE(completed({"--host", "0.0.0.0", "--api-key", "k"}).has_value());
  EXPECT_TRUE(completed({"--host", "0.0.0.0", "--allow-no-key"}).has_value());
}

TEST(Config, KnowsLoopbackWhenItSeesIt) {
  for (const char* host : {"127.0.0.1", "127.1.2.3", "::1", "localhost"}) EXPECT_TRUE(is_loopback(host)) << host;
  for (const char* host : {"0.0.0.0", "::", "192.168.1.1", "127.example.com", "localhost.example.com", ""}) {
    EXPECT_FALSE(is_loopback(host)) << host;
  }
}

TEST(Config, VerboseMeansDebugUnlessALevelWasGiven) {
  EXPECT_EQ(completed({"-v"})->log_level, "debug");
  EXPECT_EQ(completed({"-v", "--log-level", "error"})->log_level, "error");
  EXPECT_EQ(completed({"-lv", "3"})->log_level, "info");
}

TEST(Config, FindsTheBuiltInModel) {
  auto path = find_built_in_model();
  ASSERT_TRUE(path.has_value()) << path.error().message;
  EXPECT_THAT(*path, HasSubstr("coppice-demo.gguf"));
}

TEST(OwnFlags, NamesAndVariablesAreUnique) {
  std::set<std::string_view> seen;
  for (const OwnFlag& flag : own_flags()) {
    for (std::string_view name : flag.names) EXPECT_TRUE(seen.insert(name).second) << name;
    EXPECT_TRUE(flag.negation.empty() || seen.insert(flag.negation).second) << flag.negation;
    EXPECT_TRUE(flag.env.empty() || seen.insert(flag.env).second) << flag.env;
  }
}

}  // namespace
}  // namespace coppice::app
