// Ranks that a launcher starts: who did what is known, and how each rank ended.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "harness/cli/savegate_program.h"

namespace savegate::cli {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// A stand-in for srun, which needs a cluster: it starts the tasks, and ends all when one fails.
constexpr const char* kSrun = R"(#!/usr/bin/env python3
import os, subprocess, sys
count = int(sys.argv[1].split("=")[1])
ranks = [subprocess.Popen(sys.argv[3:], start_new_session=True,
                          env={**os.environ, "SLURM_PROCID": str(n), "SLURM_LOCALID": str(n),
                               "SLURM_NTASKS": str(count)}) for n in range(count)]
pid, status = os.wait()
if status:
    for rank in ranks:
        if rank.pid != pid:
            rank.terminate()
code = status
for rank in ranks:
    if rank.pid != pid:
        code = rank.wait() or code
sys.exit(1 if code else 0)
)";

// Writes from a thread, a forked child and a spawned one.
constexpr const char* kWriters = R"(
import multiprocessing, os, threading

def write(name):
    with open(os.path.join(os.environ["SAVEGATE_DIR"], name + "-" + os.environ["RANK"]), "w") as file:
        file.write(name)

if __name__ == "__main__":
    thread = threading.Thread(target=write, args=("thread",))
    thread.start()
    thread.join()
    for method in ("fork", "spawn"):
        child = multiprocessing.get_context(method).Process(target=write, args=(method,))
        child.start()
        child.join()
)";

constexpr const char* kWritersSuite = R"(
name = "writers"
summary = "For a test."
[[scenario]]
name = "of-rank-1"
summary = "What rank 1 writes, by whom ever, is known to be its own."
[[scenario.life]]
until = "save 1"
rules = [
  { match = { rank = 1, op = "write", path = "thread-1" }, action = { delay = "1ms" } },
  { match = { rank = 1, op = "write", path = "fork-1" }, action = { delay = "1ms" } },
  { match = { rank = 1, op = "write", path = "spawn-1" }, action = { delay = "1ms" } },
]
)";

constexpr const char* kFailing = R"(
from torch.distributed.elastic.multiprocessing.errors import record


@record
def main():
    raise RuntimeError("no room on this node")


main()
)";

constexpr const char* kFailingSuite = R"(
name = "fails"
summary = "For a test."
[[scenario]]
name = "at-once"
summary = "The program fails as it starts."
[[scenario.life]]
until = "save 1"
)";

class LauncherTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = SavegateProgram::why_not(); !why.empty()) GTEST_SKIP() << why;
    const std::string path = write("srun", kSrun);
    fs::permissions(path, fs::perms::owner_all);
    path_ = savegate_.folder() + ":" + std::getenv("PATH");
    ::setenv("PATH", path_.c_str(), 1);
  }
  std::string write(const std::string& name, const std::string& text) {
    std::string path = savegate_.folder() + "/" + name;
    std::ofstream(path) << text;
    return path;
  }
  bool has_torchrun() const {
    const std::string own = savegate_.bin() + "/../python/bin/python";
    const std::string python = fs::exists(own) ? own : "python3";
    return savegate_.shell(python + " -c 'import torch.distributed.run'").status == 0;
  }
  std::string life(const std::string& scenario) {
    std::ifstream file(savegate_.store() + "/latest/" + scenario + "/life-1/life.json");
    return {std::istreambuf_iterator<char>(file), {}};
  }

  SavegateProgram savegate_;
  std::string path_;
};

TEST_F(LauncherTest, AKilledRankAndTheOneThatTheLauncherEndedAreToldApart) {
  const Ran ran = savegate_.run("run smoke/kill-mid-shard --launcher srun");
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_THAT(life("kill-mid-shard"), HasSubstr("\"ended_by\": \"rule\""));
}

TEST_F(LauncherTest, ThreadsAndChildrenOfARankAreItsOwn) {
  const std::string suite = write("writers.toml", kWritersSuite);
  const std::string script = write("writers.py", kWriters);
  const Ran ran = savegate_.run("run " + suite + " --launcher srun -- python3 " + script);
  EXPECT_EQ(ran.status, 0) << ran.output;
}

TEST_F(LauncherTest, TheSameBelowMpirun) {
  if (savegate_.shell("mpirun --version").status != 0) GTEST_SKIP() << "mpirun is not installed";
  const std::string suite = write("writers.toml", kWritersSuite);
  const std::string script = write("writers.py", kWriters);
  const Ran ran = savegate_.run("run " + suite + " --launcher mpirun -- python3 " + script);
  EXPECT_EQ(ran.status, 0) << ran.output;
}

TEST_F(LauncherTest, TheSameBelowTorchrunAsItIsTyped) {
  if (!has_torchrun()) GTEST_SKIP() << "torch is not importable: run ./dev python";
  const std::string suite = write("writers.toml", kWritersSuite);
  const std::string script = write("writers.py", kWriters);
  const Ran ran = savegate_.run("run " + suite + " -- torchrun --nproc-per-node 2 " + script);
  EXPECT_EQ(ran.status, 0) << ran.output;
}

TEST_F(LauncherTest, TheErrorFileOfTorchrunIsKeptWithTheLogs) {
  if (!has_torchrun()) GTEST_SKIP() << "torch is not importable: run ./dev python";
  const std::string suite = write("fails.toml", kFailingSuite);
  const std::string script = write("fails.py", kFailing);
  const Ran ran = savegate_.run("run " + suite + " -- torchrun --nproc-per-node 2 " + script);
  const std::string logs = savegate_.store() + "/latest/at-once/life-1/logs";
  EXPECT_EQ(
      savegate_.shell("grep -q 'no room on this node' " + logs + "/torchrun-error.json").status, 0)
      << ran.output;
}

TEST_F(LauncherTest, WhereTheOptionsOfALauncherEndIsNotGuessed) {
  const Ran ran = savegate_.run("run smoke/clean -- mpirun -n 2 ./train");
  EXPECT_EQ(ran.status, 2) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("--launcher mpirun"));
}

// Without its record a rank's end would be unknown.
TEST_F(LauncherTest, ARankWhoseRecordCannotBeWrittenIsNotStarted) {
  const Ran ran = savegate_.shell("RANK=0 SAVEGATE_DIR=/ SAVEGATE_RANKS=" + savegate_.folder() +
                                  "/missing " + savegate_.bin() + "/savegate-rank -- echo begun");
  EXPECT_EQ(ran.status, 2);
  EXPECT_THAT(ran.output, HasSubstr("cannot open the record"));
  EXPECT_THAT(ran.output, testing::Not(HasSubstr("begun")));
}

// As slurmd starts it where that is not in savegate's sandbox.
TEST_F(LauncherTest, ARankThatDoesNotSeeTheMountIsNotStarted) {
  const Ran ran =
      savegate_.shell("RANK=0 SAVEGATE_DIR=/missing SAVEGATE_RANKS=" + savegate_.folder() + " " +
                      savegate_.bin() + "/savegate-rank -- echo begun");
  EXPECT_EQ(ran.status, 2);
  EXPECT_THAT(ran.output, HasSubstr("outside of savegate's sandbox"));
  EXPECT_THAT(ran.output, testing::Not(HasSubstr("begun")));
}

}  // namespace
}  // namespace savegate::cli
