// Who wrote: the main thread of a rank, another thread, a child, or nobody's process.
#include <gtest/gtest.h>

#include "fusefs/scenario_support.h"

namespace savegate::fusefs {
namespace {

using faults::Relation;

class AttributionScenarioTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!mounted_.ready()) GTEST_SKIP() << mounted_.why_not();
  }
  faults::Caller caller_of_write(int rank, const std::string& from, pid_t& started) {
    Child rank_process = Child::caller(rank, {"write", mounted_.path(from), "10", from});
    started = rank_process.pid();
    EXPECT_EQ(rank_process.wait(), 0);
    for (const auto& record : mounted_.trace()) {
      if (record.op == faults::Op::kWrite && record.path == from) return record.caller;
    }
    ADD_FAILURE() << "no write in the trace";
    return {};
  }
  Mounted mounted_;
};

TEST_F(AttributionScenarioTest, MainThread) {
  pid_t pid = 0;
  auto caller = caller_of_write(2, "main", pid);
  EXPECT_EQ(caller.rank, 2);
  EXPECT_EQ(caller.relation, Relation::kProcess);
  EXPECT_EQ(caller.pid, pid);
  EXPECT_EQ(caller.tid, pid);
}

TEST_F(AttributionScenarioTest, AnotherThread) {
  pid_t pid = 0;
  auto caller = caller_of_write(2, "thread", pid);
  EXPECT_EQ(caller.rank, 2);
  EXPECT_EQ(caller.relation, Relation::kThread);
  EXPECT_EQ(caller.pid, pid);
  EXPECT_NE(caller.tid, pid);
}

TEST_F(AttributionScenarioTest, AChildProcess) {
  pid_t pid = 0;
  auto caller = caller_of_write(2, "child", pid);
  EXPECT_EQ(caller.rank, 2);
  EXPECT_EQ(caller.relation, Relation::kChild);
  EXPECT_NE(caller.pid, pid);
}

TEST_F(AttributionScenarioTest, AProcessOfNoRank) {
  pid_t pid = 0;
  auto caller = caller_of_write(-1, "main", pid);
  EXPECT_EQ(caller.rank, -1);
  EXPECT_EQ(caller.relation, Relation::kNone);
  EXPECT_EQ(caller.pid, pid);
}

// Amid an exec the kernel lets nobody read the environment, and waits for the closes that it makes.
TEST_F(AttributionScenarioTest, AnExecThatClosesFilesIsOfItsRankAndGoesOn) {
  for (const bool in_child : {false, true}) {
    const std::string name = in_child ? "child" : "self";
    std::vector<std::string> words = {"exec", mounted_.path(name)};
    if (in_child) words.emplace_back("child");
    Child rank_process = Child::caller(2, words);
    EXPECT_EQ(rank_process.wait(), 0);
    int closes = 0;
    for (const auto& record : mounted_.trace()) {
      if (record.op != faults::Op::kClose || record.path != name) continue;
      ++closes;
      EXPECT_EQ(record.caller.rank, 2);
      const bool own = record.caller.pid == rank_process.pid();
      EXPECT_EQ(record.caller.relation, own ? Relation::kProcess : Relation::kChild);
    }
    EXPECT_EQ(closes, in_child ? 2 : 1);
  }
}

// Without a trace nothing but the close itself is of interest, and it reads no environment.
TEST(UntracedAttributionTest, ARuleOnTheClosesOfARankMeetsThem) {
  Mounted mounted(R"(
[[rule]]
match = { op = "close", rank = 2 }
action = { errno = "EIO" }
)",
                  "", Mounted::Trace::kNo);
  if (!mounted.ready()) GTEST_SKIP() << mounted.why_not();
  for (const int rank : {1, 2}) {
    Child::caller(rank, {"write", mounted.path("f"), "10", "main"}).wait();
  }
  const auto fired = mounted.fired();
  ASSERT_EQ(fired.size(), 1U);
  EXPECT_EQ(fired[0].caller.rank, 2);
}

}  // namespace
}  // namespace savegate::fusefs
