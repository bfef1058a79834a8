#include "app/cache_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "base/json.h"
#include "tier/cache_reader.h"
#include "tier/disk_tier_for_test.h"

namespace coppice::app {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;

constexpr std::uint64_t kNowUs = 1'700'000'000'000'000, kHourUs = 3'600'000'000, kMinuteUs = 60'000'000;

struct CacheCommand : tier::DiskTier {
  struct Outcome {
    int status = -1;
    std::string out, err;
    Json json() const { return Json::parse(out); }
  };
  Outcome run(const std::vector<std::string>& args) const {
    std::ostringstream out, err;
    const int status = run_cache(
        args,
        {.out = out, .err = err, .terminal = true, .clock = clock, .now_us = kNowUs, .files = tier::system_files()});
    return {status, out.str(), err.str()};
  }
  const std::string& dir() const { return options.disk->dir; }
  // Two conversations over one block, used three and one hours ago.
  void fill() {
    std::uint64_t now_us = kNowUs - 3 * kHourUs - kMinuteUs;
    options.disk->wall_us = [&now_us] { return now_us; };
    open();
    put_all(tier::chain_of(tier::kModel, older, 4, 1000));
    flush();
    now_us = kNowUs - kHourUs - kMinuteUs * 3 / 2;
    put_all(tier::chain_of(tier::kModel, newer, 4, 1000));
    tiers->put_record(tier::kRootRecordKind, tier::hex(tier::kModel), "tiny\x1b[2J model");
    tiers->put_record("session", "a", "text");
    flush();
    tiers.reset();
    options.disk->wall_us = nullptr;
  }
  void damage() const {
    std::fstream file(in_folder("00000001.seg"), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(500);
    file << '\x7f';
  }
  const Tokens older{1, 2, 3, 4, 5, 6, 7, 8, 9}, newer{1, 2, 3, 4, 50, 60};
};

TEST_F(CacheCommand, LsShowsConversationsTheNewestFirst) {
  fill();
  const Outcome outcome = run({"ls", dir()});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.err, "");
  std::istringstream lines(outcome.out);
  std::string head, first, second;
  std::getline(lines, head);
  std::getline(lines, first);
  std::getline(lines, second);
  EXPECT_THAT(first, MatchesRegex("[0-9a-f]+ +6 +4 +2.2 KiB +1.1 KiB +61 min +0 +tiny\\?\\[2J model"));
  EXPECT_THAT(second, MatchesRegex("[0-9a-f]+ +9 +4 +3.3 KiB +2.2 KiB +3 h +0 +tiny\\?\\[2J model"));
  EXPECT_THAT(run({"ls", dir(), "--limit", "1"}).out, HasSubstr("1 of 2"));
  const Json json = run({"ls", dir(), "--json"}).json();
  EXPECT_EQ(json["total"], 2);
  EXPECT_EQ(json["conversations"][1]["tokens"], 9);
  EXPECT_EQ(json["conversations"][1]["last_use_s"], (kNowUs - 3 * kHourUs - kMinuteUs) / 1'000'000);
  EXPECT_EQ(json["conversations"][0]["id"].get<std::string>().size(), 64U);
}

TEST_F(CacheCommand, StatSums) {
  fill();
  const Json json = run({"stat", dir(), "--json"}).json();
  EXPECT_EQ(json["blocks"], 4);
  EXPECT_EQ(json["tokens"], 11);
  EXPECT_EQ(json["live_bytes"], json["segment_bytes"]);
  EXPECT_EQ(json["dead_bytes"], 0);
  EXPECT_EQ(json["records"]["session"]["count"], 1);
  EXPECT_EQ(json["roots"][0]["model"], "tiny\x1b[2J model");
  const Outcome outcome = run({"stat", dir()});
  EXPECT_THAT(outcome.out, HasSubstr("conversations  2\ntokens         11 in 4 blocks\n"));
  EXPECT_THAT(outcome.out, HasSubstr("last used      61 min to 3 h ago\n"));
  EXPECT_THAT(outcome.out, testing::Not(HasSubstr("\x1b")));
}

TEST_F(CacheCommand, VerifyFindsWhatIsBadAndRepairsOnDemand) {
  fill();
  EXPECT_THAT(run({"verify", dir()}).out, HasSubstr("4 good blocks read, 4.4 KiB: all is well"));
  EXPECT_EQ(run({"verify", dir()}).status, 0);
  damage();
  const Outcome bad = run({"verify", dir()});
  EXPECT_EQ(bad.status, 1);
  EXPECT_THAT(bad.out, HasSubstr("segment 1 at 0: the record's checksum is wrong"));
  EXPECT_THAT(bad.out, HasSubstr("1 bad, 3 that go on from them"));
  EXPECT_EQ(run({"verify", dir(), "--json"}).json()["bad"][0]["segment"], 1);
  const Outcome repaired = run({"verify", "--repair", dir()});
  EXPECT_EQ(repaired.status, 0);
  EXPECT_THAT(repaired.out, HasSubstr("4 blocks removed"));
  EXPECT_EQ(run({"verify", dir()}).status, 0);
}

TEST_F(CacheCommand, PruneByAgeAndBySize) {
  fill();
  Outcome outcome = run({"prune", dir(), "--older-than", "2h"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_THAT(outcome.out, HasSubstr("2 blocks removed, 2.2 KiB; on disk 4.4 KiB -> 2.2 KiB"));
  outcome = run({"prune", "--json", "--keep-bytes", "0", dir()});
  EXPECT_EQ(outcome.json()["removed_blocks"], 2);
  EXPECT_EQ(outcome.json()["segment_bytes"], 0);
}

TEST_F(CacheCommand, ExportAndImport) {
  fill();
  const std::string file = current().sub("export"), other = current().sub("other");
  Outcome outcome = run({"export", dir(), file});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_THAT(outcome.out, HasSubstr("4 blocks, 4.4 KiB, and 2 records written to " + file));
  EXPECT_EQ(run({"export", dir(), file}).status, 1);  // it is there
  outcome = run({"import", other, file});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_THAT(outcome.out, HasSubstr("4 blocks, 4.4 KiB, and 2 records taken in; 0 blocks and 0 records were there"));
  EXPECT_EQ(run({"import", other, file, "--json"}).json()["known_blocks"], 4);
  const std::string newest = run({"ls", dir(), "--json"}).json()["conversations"][0]["id"];
  outcome = run({"export", dir(), current().sub("one"), "--chain", newest.substr(0, 12), "--json"});
  EXPECT_EQ(outcome.json()["blocks"], 2);
  EXPECT_EQ(outcome.json()["records"], 1);
}

TEST_F(CacheCommand, AFolderInUseIsReadAndNotChanged) {
  fill();
  const std::string file = current().sub("export");
  open();
  EXPECT_EQ(run({"ls", dir()}).status, 0);
  EXPECT_EQ(run({"stat", dir()}).status, 0);
  EXPECT_EQ(run({"verify", dir()}).status, 0);
  EXPECT_EQ(run({"export", dir(), file}).status, 0);
  for (const std::vector<std::string>& args : {std::vector<std::string>{"prune", dir(), "--keep-bytes", "0"},
                                               {"verify", dir(), "--repair"},
                                               {"import", dir(), file}}) {
    const Outcome outcome = run(args);
    EXPECT_EQ(outcome.status, 1);
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, HasSubstr("another server uses the cache folder"));
  }
  EXPECT_EQ(restore(tier::kModel, older), 3U);
}

TEST_F(CacheCommand, WrongUsageIsStatusTwoAndSaysWhereHelpIs) {
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{}, "See: coppice cache --help"},
      {{"list", "x"}, "there is no command 'list'\nSee: coppice cache --help"},
      {{"ls"}, "See: coppice cache ls --help"},
      {{"ls", "x", "--nonsense"}, "--nonsense"},
      {{"ls", "x", "--limit", "many"}, "many"},
      {{"ls", "x", "--limit", "-1"}, "See: coppice cache ls --help"},
      {{"prune", "x"}, "prune needs --older-than or --keep-bytes"},
      {{"prune", "x", "--older-than", "yesterday"}, "--older-than: 'yesterday' is not an age"},
      {{"prune", "x", "--keep-bytes", "much"}, "--keep-bytes: 'much' is not a size"},
      {{"export", "x"}, "See: coppice cache export --help"},
      {{"import", "x"}, "See: coppice cache import --help"},
  };
  for (const auto& [args, expected] : cases) {
    const Outcome outcome = run(args);
    EXPECT_EQ(outcome.status, 2) << expected;
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, HasSubstr(expected));
  }
}

TEST_F(CacheCommand, HelpGoesToOut) {
  EXPECT_THAT(run({"--help"}).out, HasSubstr("verify"));
  EXPECT_THAT(run({"prune", "--help"}).out, HasSubstr("--older-than"));
  EXPECT_EQ(run({"prune", "--help"}).status, 0);
}

TEST_F(CacheCommand, WhatIsNoCacheIsStatusOneAndStaysAsItIs) {
  const std::string plain = current().sub("plain");
  std::filesystem::create_directories(plain);
  std::ofstream(plain + "/mine") << "x";
  const std::string file = current().sub("file");
  std::ofstream(file) << "no export";
  for (const std::vector<std::string>& args : {std::vector<std::string>{"ls", plain},
                                               {"ls", current().sub("nowhere")},
                                               {"verify", plain, "--repair"},
                                               {"prune", plain, "--keep-bytes", "0"},
                                               {"export", plain, current().sub("out")},
                                               {"import", plain, file}}) {
    const Outcome outcome = run(args);
    EXPECT_EQ(outcome.status, 1) << args[0];
    EXPECT_THAT(outcome.err, testing::StartsWith("coppice: "));
  }
  EXPECT_EQ(tier::system_files()->list(plain).value().size(), 1U);
}

}  // namespace
}  // namespace coppice::app
