// Kills at an operation: who dies, and which bytes are there afterwards.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <thread>

#include "fusefs/scenario_support.h"

namespace savegate::fusefs {
namespace {

using faults::Relation;

class KillTest : public testing::Test {
 protected:
  void arm(const std::string& match, const std::string& action) {
    mounted_ = std::make_unique<Mounted>("[[rule]]\nname = \"k\"\nmatch = { " + match +
                                         " }\naction = { " + action + " }\n");
    if (!mounted_->ready()) GTEST_SKIP() << mounted_->why_not();
  }
  Child write_as(int rank, const std::string& name, const std::string& bytes,
                 const std::string& from = "main") {
    return Child::caller(rank, {"write", mounted_->path(name), bytes, from});
  }
  std::size_t size(const std::string& name) { return read_all(mounted_->backing(name)).size(); }

  std::unique_ptr<Mounted> mounted_;
};

bool killed(int status) { return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL; }

TEST_F(KillTest, BeforeNothingIsWritten) {
  arm("op = \"write\", rank = 1", "kill = \"SIGKILL\", when = \"before\"");
  if (IsSkipped()) return;
  EXPECT_TRUE(killed(write_as(1, "a", "100000").wait()));
  EXPECT_EQ(size("a"), 0u);
  auto fired = mounted_->fired();
  ASSERT_EQ(fired.size(), 1u);
  EXPECT_EQ(fired[0].caller.rank, 1);
  EXPECT_EQ(fired[0].returned, 0u);
}

TEST_F(KillTest, InTheMiddleTheBytesBeforeAreWritten) {
  arm("op = \"write\", rank = 1", "kill = \"SIGKILL\", when = \"middle\", at = 4097");
  if (IsSkipped()) return;
  EXPECT_TRUE(killed(write_as(1, "a", "100000").wait()));
  EXPECT_EQ(size("a"), 4097u);
  EXPECT_EQ(mounted_->fired().at(0).returned, 4097u);
}

TEST_F(KillTest, AfterAllIsWritten) {
  arm("op = \"write\", rank = 1", "kill = \"SIGKILL\", when = \"after\"");
  if (IsSkipped()) return;
  EXPECT_TRUE(killed(write_as(1, "a", "100000").wait()));
  EXPECT_EQ(size("a"), 100000u);
}

TEST_F(KillTest, OtherRanksLiveOn) {
  arm("op = \"write\", rank = 1", "kill = \"SIGKILL\"");
  if (IsSkipped()) return;
  EXPECT_EQ(write_as(0, "a", "10").wait(), 0);
  EXPECT_EQ(write_as(-1, "b", "10").wait(), 0);
  EXPECT_TRUE(killed(write_as(1, "c", "10").wait()));
}

TEST_F(KillTest, ACreateIsKilledBeforeOrAfterTheNameIsThere) {
  arm("op = \"create\", path = \"a\"", "kill = \"SIGKILL\", when = \"before\"");
  if (IsSkipped()) return;
  EXPECT_TRUE(killed(write_as(1, "a", "10").wait()));
  EXPECT_NE(::access(mounted_->backing("a").c_str(), F_OK), 0);
}

TEST_F(KillTest, OfAChildLeavesItsRankAlive) {
  arm("op = \"write\", process = \"child\"", "kill = \"SIGKILL\", target = \"child\"");
  if (IsSkipped()) return;
  EXPECT_EQ(WEXITSTATUS(write_as(1, "a", "10", "child").wait()), 101);
  EXPECT_EQ(mounted_->fired().at(0).caller.relation, Relation::kChild);
}

TEST_F(KillTest, OfTheRankByItsChildEndsTheRank) {
  arm("op = \"write\", process = \"child\"", "kill = \"SIGKILL\", target = \"rank\"");
  if (IsSkipped()) return;
  EXPECT_TRUE(killed(write_as(1, "a", "10", "child").wait()));
}

TEST_F(KillTest, OfTheJobEndsAllRanksThatWereSeen) {
  mounted_ = std::make_unique<Mounted>(R"(
[[rule]]
match = { op = "write", path = "held" }
action = { hang = true }
[[rule]]
match = { op = "write", path = "trigger" }
action = { kill = "SIGKILL", target = "job" }
)");
  if (!mounted_->ready()) GTEST_SKIP() << mounted_->why_not();
  Child first = write_as(0, "held", "10");
  ASSERT_TRUE(mounted_->wait_held(1));
  EXPECT_TRUE(killed(write_as(1, "trigger", "10").wait()));
  EXPECT_TRUE(killed(first.wait()));
}

// Both are seen by the mount alone: no rule and no trace looks at what the first one writes.
TEST_F(KillTest, OfTheJobEndsARankThatNoRuleEverMatched) {
  mounted_ = std::make_unique<Mounted>(R"(
[[rule]]
match = { op = "write", path = "trigger" }
action = { kill = "SIGKILL", target = "job" }
)",
                                       "", Mounted::Trace::kNo);
  if (!mounted_->ready()) GTEST_SKIP() << mounted_->why_not();
  Child first = Child::caller(0, {"write", mounted_->path("a"), "10", "and-wait"});
  while (size("a") != 10) std::this_thread::yield();
  EXPECT_TRUE(killed(write_as(1, "trigger", "10").wait()));
  EXPECT_TRUE(killed(first.wait()));
}

TEST_F(KillTest, OfTheRankByItsChildWritesNothingAndEndsTheRanksOtherChildrenToo) {
  arm("op = \"write\", path = \"trigger\"", "kill = \"SIGKILL\", target = \"rank\"");
  if (IsSkipped()) return;
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const int kept = ::dup(ends[1]);  // open in the rank and in all that it starts
  Child rank = Child::caller(1, {"write", mounted_->path("trigger"), "10", "child-beside-idle"});
  ::close(kept);
  ::close(ends[1]);
  EXPECT_TRUE(killed(rank.wait()));
  pollfd hangup{ends[0], POLLHUP, 0};
  EXPECT_EQ(::poll(&hangup, 1, 10'000), 1) << "a process of the rank lives on";
  ::close(ends[0]);
  EXPECT_EQ(size("trigger"), 0u);
}

TEST_F(KillTest, ASignalThatIsHandledOrStopsLetsTheOperationGoOn) {
  arm("op = \"write\", rank = 1", "kill = \"SIGSTOP\", when = \"before\"");
  if (IsSkipped()) return;
  Child rank = write_as(1, "a", "10");
  int status = 0;
  ASSERT_EQ(::waitpid(rank.pid(), &status, WUNTRACED), rank.pid());
  EXPECT_TRUE(WIFSTOPPED(status));
  rank.kill(SIGCONT);
  EXPECT_EQ(rank.wait(), 0);
  EXPECT_EQ(size("a"), 10u);
}

}  // namespace
}  // namespace savegate::fusefs
