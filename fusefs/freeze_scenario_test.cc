// Freezes: processes that are stopped at an operation, and go on.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <thread>

#include "fusefs/scenario_support.h"

namespace savegate::fusefs {
namespace {

class FreezeTest : public testing::Test {
 protected:
  void arm(const std::string& match, const std::string& action) {
    mounted_ = std::make_unique<Mounted>("[[rule]]\nname = \"f\"\nmatch = { " + match +
                                         " }\naction = { " + action + " }\n");
    if (!mounted_->ready()) GTEST_SKIP() << mounted_->why_not();
  }
  Child write_as(int rank, const std::string& name, const std::string& from = "main") {
    return Child::caller(rank, {"write", mounted_->path(name), "5000", from});
  }
  std::string content(const std::string& name) { return read_all(mounted_->backing(name)); }

  std::unique_ptr<Mounted> mounted_;
};

// Waits until the process stops (or goes on) as its parent is told.
bool is_told(pid_t pid, int options) {
  int status = 0;
  if (::waitpid(pid, &status, options) != pid) return false;
  return options == WUNTRACED ? WIFSTOPPED(status) : WIFCONTINUED(status);
}

TEST_F(FreezeTest, TheRankStopsAndGoesOnWhenReleased) {
  arm("op = \"write\", rank = 1", "freeze = true");
  if (IsSkipped()) return;
  Child writer = write_as(1, "a");
  ASSERT_TRUE(mounted_->wait_held(1));
  EXPECT_EQ(content("a"), "");
  EXPECT_EQ(mounted_->fired().at(0).action, "freeze until it is released rank");
  mounted_->command(R"({"cmd":"release","rule":"f"})");
  ASSERT_TRUE(mounted_->wait_held(0));
  EXPECT_EQ(writer.wait(), 0);
  EXPECT_EQ(content("a").size(), 5000u);
}

// The writer waits in the kernel and never is seen to stop; so one rank's operation stops another
// that computes.
TEST_F(FreezeTest, TheJobStopsAndThawsAfterItsTime) {
  arm("op = \"write\", path = \"b\"", "freeze = \"200ms\", target = \"job\"");
  if (IsSkipped()) return;
  Child idle = write_as(0, "a", "and-wait");
  while (content("a").size() != 5000) std::this_thread::yield();
  Child writer = write_as(1, "b");
  EXPECT_TRUE(is_told(idle.pid(), WUNTRACED));
  EXPECT_TRUE(is_told(idle.pid(), WCONTINUED));
  EXPECT_EQ(writer.wait(), 0);
  EXPECT_EQ(content("b").size(), 5000u);
}

TEST_F(FreezeTest, AFrozenRankCanBeKilled) {
  arm("op = \"write\"", "freeze = true");
  if (IsSkipped()) return;
  Child frozen = write_as(1, "a");
  ASSERT_TRUE(mounted_->wait_held(1));
  frozen.kill(SIGKILL);
  ASSERT_TRUE(frozen.wait_for(2000)) << "still held";
  EXPECT_TRUE(mounted_->wait_held(0));
  EXPECT_EQ(content("a"), "");
}

}  // namespace
}  // namespace savegate::fusefs
