#include "fusefs/attribution.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <map>

namespace savegate::fusefs {
namespace {

using faults::Relation;

struct FakeProcesses {
  std::map<pid_t, ProcessStatus> status;  // by thread
  std::map<pid_t, int> rank;

  ProcessSource source() const {
    return {[this](pid_t tid) -> std::optional<ProcessStatus> {
              auto found = status.find(tid);
              return found == status.end() ? std::nullopt : std::optional(found->second);
            },
            [this](pid_t pid) -> std::optional<int> {
              auto found = rank.find(pid);
              return found == rank.end() ? std::nullopt : std::optional(found->second);
            }};
  }
};

// 10 is the runner, 20 a rank's process with thread 21, 30 its child and 40 that one's child.
FakeProcesses job() {
  FakeProcesses processes;
  processes.status = {
      {10, {10, 1}}, {20, {20, 10}}, {21, {20, 10}}, {30, {30, 20}}, {40, {40, 30}}};
  processes.rank = {{20, 3}, {30, 3}, {40, 3}};
  return processes;
}

TEST(AttributionTest, MainThreadOfARankIsItsProcess) {
  auto processes = job();
  auto found = attribute(20, 10, processes.source());
  EXPECT_EQ(found.rank, 3);
  EXPECT_EQ(found.relation, Relation::kProcess);
  EXPECT_EQ(found.pid, 20);
  EXPECT_EQ(found.root, 20);
}

TEST(AttributionTest, AnotherThreadOfTheProcessIsAThread) {
  auto processes = job();
  auto found = attribute(21, 10, processes.source());
  EXPECT_EQ(found.rank, 3);
  EXPECT_EQ(found.relation, Relation::kThread);
  EXPECT_EQ(found.pid, 20);
}

TEST(AttributionTest, DescendantsThatInheritTheRankAreChildrenOfTheTopMost) {
  auto processes = job();
  for (pid_t pid : {30, 40}) {
    auto found = attribute(pid, 10, processes.source());
    EXPECT_EQ(found.rank, 3);
    EXPECT_EQ(found.relation, Relation::kChild);
    EXPECT_EQ(found.pid, pid);
    EXPECT_EQ(found.root, 20);
  }
}

TEST(AttributionTest, AChildWithACleanedEnvironmentHasItsAncestorsRank) {
  auto processes = job();
  processes.rank.erase(30);
  processes.rank.erase(40);
  auto found = attribute(40, 10, processes.source());
  EXPECT_EQ(found.rank, 3);
  EXPECT_EQ(found.relation, Relation::kChild);
  EXPECT_EQ(found.root, 20);
}

TEST(AttributionTest, TheNearestRankCounts) {
  auto processes = job();
  processes.rank[30] = 7;  // a launcher in rank 3 that starts ranks of its own
  processes.rank[40] = 7;
  auto found = attribute(40, 10, processes.source());
  EXPECT_EQ(found.rank, 7);
  EXPECT_EQ(found.root, 30);
}

TEST(AttributionTest, TheRunnersOwnEnvironmentDoesNotCount) {
  auto processes = job();
  processes.rank = {{10, 0}};
  auto found = attribute(20, 10, processes.source());
  EXPECT_EQ(found.rank, -1);
  EXPECT_EQ(found.relation, Relation::kNone);
  EXPECT_EQ(found.pid, 20);
}

TEST(AttributionTest, AThreadThatIsGoneHasNoRank) {
  auto found = attribute(99, 10, job().source());
  EXPECT_EQ(found.rank, -1);
  EXPECT_EQ(found.pid, 0);
}

TEST(AttributionTest, KernelWriteBackHasNoCaller) {
  Attribution attribution(1);
  EXPECT_EQ(attribution.caller(0).rank, -1);
  EXPECT_EQ(attribution.caller(0).pid, 0);
}

TEST(AttributionTest, AProcessCanSayItsRankItself) {
  Attribution attribution(::getppid());
  EXPECT_EQ(attribution.caller_as(::getpid(), 5).rank, 5);
  EXPECT_EQ(attribution.caller(::getpid()).rank, 5);
  auto targets = attribution.targets(attribution.caller(::getpid()), faults::KillTarget::kJob);
  ASSERT_EQ(targets.size(), 1u);
  EXPECT_EQ(targets[0].pid, ::getpid());
}

}  // namespace
}  // namespace savegate::fusefs
