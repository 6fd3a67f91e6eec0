// Whatever is killed, nothing stays: no process, no mount, and a store that can be read.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "harness/cli/savegate_program.h"

namespace savegate::cli {
namespace {

namespace fs = std::filesystem;

// A mount that names this folder, or lies where runners have theirs, and that this process can see.
// Those of other tests, which mount where all can see it, are not meant.
bool mounted_below(const std::string& folder) {
  const std::string runners =
      ::geteuid() == 0 ? " /run/savegate" : " /tmp/savegate-" + std::to_string(::geteuid()) + "/";
  std::ifstream mounts("/proc/self/mounts");
  for (std::string line; std::getline(mounts, line);)
    if (line.find(folder) != std::string::npos || line.find(runners) != std::string::npos)
      return true;
  return false;
}

// Every run that was begun is listed and can be judged, cut short or not.
void expect_readable(const SavegateProgram& savegate) {
  if (!fs::exists(savegate.store())) return;  // killed before the first folder
  for (const auto& run : fs::directory_iterator(savegate.store())) {
    if (run.is_symlink() || !run.is_directory()) continue;  // latest, history.db
    for (const auto& scenario : fs::directory_iterator(run.path())) {
      if (!fs::exists(scenario.path() / "scenario.json")) continue;
      const Ran judged = savegate.run("judge " + scenario.path().string());
      EXPECT_TRUE(judged.status == 0 || judged.status == 1 || judged.status == 4)
          << scenario.path() << ": exit status " << judged.status << "\n"
          << judged.output;
    }
  }
}

class KilledTest : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (const std::string why = SavegateProgram::why_not(); !why.empty()) GTEST_SKIP() << why;
  }
  SavegateProgram savegate_;
};

TEST_P(KilledTest, TheRunnerAtARandomMoment) {
  const auto seed = static_cast<std::uint64_t>(GetParam());
  savegate_.run_and_signal("run smoke --world 2", SIGKILL, seed);
  EXPECT_EQ(savegate_.processes_left(), "");
  EXPECT_FALSE(mounted_below(savegate_.folder()));
  expect_readable(savegate_);
}

TEST_P(KilledTest, TheDaemonAtARandomMoment) {
  const auto seed = static_cast<std::uint64_t>(GetParam());
  const Ran ran =
      savegate_.run_and_signal("run smoke/clean smoke/slow-rank", SIGKILL, seed, "savegate-fs");
  EXPECT_NE(ran.status, 128 + SIGKILL) << ran.output;
  EXPECT_EQ(savegate_.processes_left(), "");
  EXPECT_FALSE(mounted_below(savegate_.folder()));
  expect_readable(savegate_);
}

INSTANTIATE_TEST_SUITE_P(Seeds, KilledTest, testing::Range(1, 21));

}  // namespace
}  // namespace savegate::cli
