#include "harness/run/random_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "faults/plan.h"

namespace savegate::harness {
namespace {

using faults::Op;
using faults::TraceRecord;

class RandomPlanTest : public ::testing::Test {
 protected:
  RandomPlanTest() {
    for (int save = 1; save <= 5; ++save)
      for (int rank = 0; rank < 2; ++rank)
        for (const Op op :
             {Op::kPhase, Op::kCreate, Op::kWrite, Op::kWrite, Op::kFsync, Op::kRename})
          add(op, rank, save);
  }
  void add(Op op, int rank, int save) {
    TraceRecord made;
    made.begin_seq = made.end_seq = trace_.records.size() + 1;
    made.op = op;
    made.caller.rank = rank;
    made.path = "step_" + std::to_string(save) + "/shard-" + std::to_string(rank) + " \"x\"";
    made.phase = "save " + std::to_string(save);
    made.requested = op == Op::kWrite ? 4096 : 0;
    trace_.records.push_back(made);
  }
  Scenario plan(std::uint64_t seed, std::uint64_t number) const {
    return random_scenario(random_clean_scenario(2), trace_, seed, number).value();
  }

  faults::Trace trace_;
};

TEST_F(RandomPlanTest, TheSameSeedAndNumberMakeTheSamePlanWhicheverRankWasFirst) {
  const std::string one = print_scenario(plan(7, 3));
  std::stable_sort(
      trace_.records.begin(), trace_.records.end(),
      [](const TraceRecord& a, const TraceRecord& b) { return a.caller.rank > b.caller.rank; });
  for (std::size_t i = 0; i < trace_.records.size(); ++i) trace_.records[i].begin_seq = i + 1;
  EXPECT_EQ(print_scenario(plan(7, 3)), one);
  EXPECT_NE(print_scenario(plan(7, 4)), one);
  EXPECT_NE(print_scenario(plan(8, 3)), one);
}

TEST_F(RandomPlanTest, EveryPlanHasOneRequiredFaultALifeAndAnEndThatIsComplete) {
  for (std::uint64_t number = 1; number <= 200; ++number) {
    const Scenario made = plan(1, number);
    ASSERT_GE(made.lives.size(), 2u);
    for (std::size_t i = 0; i < made.lives.size(); ++i) {
      const auto& rules = made.lives[i].plan.rules;
      const auto required = std::count_if(rules.begin(), rules.end(),
                                          [](const faults::Rule& rule) { return rule.required; });
      EXPECT_EQ(required, i + 1 < made.lives.size() ? 1 : 0) << number;
    }
    EXPECT_EQ(made.lives.back().expect.outcome, Outcome::kComplete);
  }
}

TEST_F(RandomPlanTest, KillsAndErrorsOfAllKindsOccur) {
  std::set<std::string> kinds;
  for (std::uint64_t number = 1; number <= 200; ++number)
    kinds.insert(faults::to_string(plan(1, number).lives[0].plan.rules[0].action));
  for (const char* kind : {"kill SIGKILL before rank", "kill SIGKILL after job",
                           "kill SIGKILL middle 50% rank", "errno ENOSPC", "errno EIO"})
    EXPECT_TRUE(kinds.contains(kind)) << kind;
}

TEST_F(RandomPlanTest, ItsTomlIsTheSameScenario) {
  for (std::uint64_t number = 1; number <= 50; ++number) {
    Scenario made = plan(1, number);
    const auto suite = parse_suite(print_suite_of(made), "plan.toml");
    ASSERT_TRUE(suite) << suite.error().to_string() << "\n" << print_suite_of(made);
    Scenario read = suite->scenarios.at(0);
    read.source = made.source;
    read.point = made.point;
    EXPECT_EQ(print_scenario(read), print_scenario(made));
  }
}

TEST_F(RandomPlanTest, WithoutASaveThereIsNothingToMakeAPlanFrom) {
  trace_.records.clear();
  EXPECT_FALSE(random_scenario(random_clean_scenario(2), trace_, 1, 1));
}

}  // namespace
}  // namespace savegate::harness
