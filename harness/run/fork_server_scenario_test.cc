// A program that stays at its fork point, and the ranks that go on from there.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>

#include "harness/run/files.h"
#include "harness/run/fork_server.h"
#include "harness/run/proc.h"
#include "harness/run/python.h"
#include "harness/run/test_directory.h"

namespace savegate::harness {
namespace {

using testing::HasSubstr;

class ForkServerTest : public testing::Test {
 protected:
  void SetUp() override {
    // As pid 1 of a sandbox does: what loses its parent comes here.
    ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    if (!find_executable("python3")) GTEST_SKIP() << "python3 is not installed";
  }

  // The program prints a line as it is imported and then runs `after` in each rank.
  std::vector<std::string> program(const std::string& after) {
    const std::string path = directory_.path() + "/train.py";
    EXPECT_TRUE(write_file(path,
                           "import os, sys, savegate_hook\nprint('imported', flush=True)\n"
                           "savegate_hook.fork_point()\n" +
                               after));
    return {"python3", path};
  }

  SpawnRequest rank(const std::vector<std::string>& command, int number) {
    SpawnRequest request;
    request.command = command;
    request.environment = environment_with({"RANK=" + std::to_string(number)});
    output_ = UniqueFd(::open(log().c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    request.output = output_.get();
    return request;
  }

  std::string log() const { return directory_.path() + "/rank.log"; }

  TestDirectory directory_;
  UniqueFd output_;
  ForkServers servers_{{python_path(SAVEGATE_SOURCE_DIR "/build/bin")}, directory_.path()};
};

TEST_F(ForkServerTest, EveryRankGoesOnFromTheForkPointInItsOwnEnvironmentAndIsWaitedFor) {
  const auto command = program(
      "print('rank', os.environ['RANK'], flush=True)\n"
      "sys.exit(40 + int(os.environ['RANK']))\n");
  for (const int number : {0, 1}) {
    auto process = servers_.spawn(rank(command, number));
    ASSERT_TRUE(process) << process.error().to_string();
    const auto status = process->wait_for(20 * kSecond);
    ASSERT_TRUE(status);
    EXPECT_EQ(status->code, 40 + number);
  }
  EXPECT_EQ(read_file(log()).value_or(""), "rank 0\nrank 1\n");
  // The import was paid once.
  EXPECT_EQ(read_file(directory_.path() + "/fork-server-1.log").value_or(""), "imported\n");
}

// By /proc/PID/environ the file system knows whose operation it sees.
TEST_F(ForkServerTest, TheKernelShowsTheRanksOwnEnvironment) {
  auto process = servers_.spawn(rank(program("import signal\nprint('up', flush=True)\n"
                                             "signal.pause()\n"),
                                     3));
  ASSERT_TRUE(process) << process.error().to_string();
  while (read_file(log()).value_or("").empty()) ASSERT_FALSE(process->wait_for(10'000'000));
  EXPECT_TRUE(environment_has(process->pid(), "RANK=3"));
  process->kill_group(SIGKILL);
  const auto status = process->wait_for(20 * kSecond);
  ASSERT_TRUE(status);
  EXPECT_EQ(status->signal, SIGKILL);
}

TEST_F(ForkServerTest, AProgramThatNeverComesToItsForkPointIsAnErrorWithWhatItSaid) {
  const std::string path = directory_.path() + "/other.py";
  ASSERT_TRUE(write_file(path, "raise SystemExit('nothing to train')\n"));
  const auto process = servers_.spawn(rank({"python3", path}, 0));
  ASSERT_FALSE(process);
  EXPECT_EQ(process.error().code, Code::kUnavailable);
  EXPECT_THAT(process.error().to_string(), HasSubstr("nothing to train"));
}

}  // namespace
}  // namespace savegate::harness
