// What an ended program leaves behind: no process, no folder. And servers that somebody else runs, which may end.
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include "peers/child.h"
#include "peers/cleanup.h"
#include "process_test_support.h"
#include "run.h"

namespace coppice::bench {
namespace {

// A program, with what it starts itself: both write their numbers, then wait for ever.
std::filesystem::path write_server(const std::filesystem::path& folder) {
  const auto file = folder / "server";
  std::ofstream(file) << "#!/bin/sh\ntrap '' TERM INT\nsleep 1000 &\necho $! $$ > " << (folder / "new").string()
                      << "\nmv " << (folder / "new").string() << " " << (folder / "pids").string() << "\nwait\n";
  ::chmod(file.c_str(), 0755);
  return file;
}

TEST(Interrupted, NoProcessAndNoFolderStays) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const ScratchFolder folder;
    const auto server = write_server(folder.path()), temporary = folder.path() / "tmp";
    std::filesystem::create_directory(temporary);
    const pid_t bench = ::fork();
    if (bench == 0) {
      ::setenv("TMPDIR", temporary.c_str(), 1);
      ::execl(COPPICE_BENCH_PROGRAM, "coppice-bench", "run", "--model", "m=none", "--scenario", "turn2", "--spawn",
              ("slow=" + server.string()).c_str(), nullptr);
      ::_exit(127);
    }
    ASSERT_TRUE(eventually([&] { return std::filesystem::exists(folder.path() / "pids"); }));
    pid_t sleeper = 0, leader = 0;
    std::ifstream(folder.path() / "pids") >> sleeper >> leader;
    EXPECT_TRUE(exists(leader));
    EXPECT_FALSE(std::filesystem::is_empty(temporary));
    ::kill(bench, signal);
    int status = 0;
    ASSERT_EQ(::waitpid(bench, &status, 0), bench);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 128 + signal) << status;
    EXPECT_TRUE(std::filesystem::is_empty(temporary));
    EXPECT_TRUE(eventually([&] { return !exists(leader) && !exists(sleeper); })) << leader << " " << sleeper;
  }
}

TEST(Interrupted, AServerThatEndsTakesItsOwnWithIt) {
  const ScratchFolder folder;
  auto child = Child::start({write_server(folder.path()).string()}, folder.path() / "log");
  ASSERT_TRUE(child);
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(folder.path() / "pids"); }));
  pid_t sleeper = 0, leader = 0;
  std::ifstream(folder.path() / "pids") >> sleeper >> leader;
  child->signal(SIGKILL);
  EXPECT_TRUE(child->wait(std::chrono::seconds(30)));
  EXPECT_TRUE(eventually([&] { return !exists(sleeper); }));
}

TEST(Peers, AWrongAddressIsAnErrorAtOnce) {
  const auto end = run({.scenarios = {"turn2"}, .peers = {{"mine", "http://127.0.0.1:1"}}});
  ASSERT_FALSE(end);
  EXPECT_NE(end.error().find("mine"), std::string::npos) << end.error();
  EXPECT_NE(end.error().find("127.0.0.1:1"), std::string::npos) << end.error();
}

TEST(Run, WhatThereIsNoTimeForIsAResult) {
  const auto end = run({.scenarios = {"restart"}, .spawn = {{"none", "/bin/false"}}, .repeats = 2, .budget_s = 1e-9});
  ASSERT_TRUE(end);
  ASSERT_EQ(end->results.records.size(), 4U);
  for (const Record& r : end->results.records) EXPECT_TRUE(r.left_out);
}

}  // namespace
}  // namespace coppice::bench
