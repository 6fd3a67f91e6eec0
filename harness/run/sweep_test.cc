#include "harness/run/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace savegate::harness {
namespace {

using faults::KillAction;
using faults::Op;
using faults::TraceRecord;
using faults::When;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TraceRecord record(Op op, int rank, const std::string& path, const std::string& phase) {
  static std::uint64_t sequence = 0;
  TraceRecord made;
  made.begin_seq = ++sequence;
  made.end_seq = ++sequence;
  made.op = op;
  made.caller.rank = rank;
  made.path = path;
  made.phase = phase;
  made.requested = op == Op::kWrite ? 4096 : 0;
  return made;
}

class SweepTest : public ::testing::Test {
 protected:
  SweepTest() {
    scenario_.name = "kill";
    scenario_.lives.resize(2);
    scenario_.generator.emplace();
    scenario_.generator->at = "every operation";
    scenario_.generator->phase = "save 2";
    scenario_.generator->action = KillAction{};
    trace_.records = {
        record(Op::kWrite, 0, "step_1/shard-0", "save 1"),
        record(Op::kLookup, 0, "step_2/shard-0", "save 2"),
        record(Op::kCreate, 0, "step_2/shard-0", "save 2"),
        record(Op::kWrite, 0, "step_2/shard-0", "save 2"),
        record(Op::kWrite, 1, "step_2/shard-1", "save 2"),
        record(Op::kWrite, 0, "step_2/shard-0", "save 2/data"),
        record(Op::kFsync, 0, "step_2/shard-0", "save 2"),
        record(Op::kRelease, 0, "step_2/shard-0", "save 2"),
        record(Op::kPhase, 0, "point", "save 2"),
        record(Op::kRead, -1, "step_2/shard-0", ""),
    };
  }

  std::vector<std::string> points() const {
    const auto sweep = make_sweep(scenario_, trace_);
    std::vector<std::string> names;
    if (sweep) {
      for (const Scenario& scenario : sweep->scenarios) names.push_back(scenario.point);
    }
    return names;
  }

  Scenario scenario_;
  faults::Trace trace_;
};

TEST_F(SweepTest, EveryOperationOfThePhaseIsAPointAndQueriesAreNot) {
  EXPECT_THAT(points(), ElementsAre("rank 0 create step_2/shard-0 nth 1 before",
                                    "rank 0 write step_2/shard-0 nth 1 before",
                                    "rank 1 write step_2/shard-1 nth 1 before",
                                    "rank 0 write step_2/shard-0 nth 2 before",
                                    "rank 0 fsync step_2/shard-0 nth 1 before"));
}

TEST_F(SweepTest, RanksNarrowThePoints) {
  scenario_.generator->ranks = {1};
  EXPECT_THAT(points(), ElementsAre("rank 1 write step_2/shard-1 nth 1 before"));
}

// Only an operation that moves bytes has a middle.
TEST_F(SweepTest, MiddleIsTriedWhereBytesMove) {
  scenario_.generator->ranks = {0};
  scenario_.generator->when = {When::kMiddle};
  EXPECT_THAT(points(), ElementsAre("rank 0 write step_2/shard-0 nth 1 middle",
                                    "rank 0 write step_2/shard-0 nth 2 middle"));
  const auto sweep = make_sweep(scenario_, trace_);
  const auto& action =
      std::get<KillAction>(sweep->scenarios.at(0).lives.at(0).plan.rules.at(0).action);
  EXPECT_EQ(action.at.share, 0.5);
}

TEST_F(SweepTest, EveryWriteLeavesOutOtherOperations) {
  scenario_.generator->at = "every write";
  scenario_.generator->action = faults::ErrnoAction{};
  scenario_.generator->ranks = {0};
  EXPECT_THAT(points(), ElementsAre("rank 0 write step_2/shard-0 nth 1",
                                    "rank 0 write step_2/shard-0 nth 2"));
}

// Else a caller that asks again for the rest of a short write would rightly succeed.
TEST_F(SweepTest, AnErrorOfAWriteLastsAndThatOfAnotherOperationDoesNot) {
  scenario_.generator->action = faults::ErrnoAction{};
  const auto sweep = make_sweep(scenario_, trace_);
  ASSERT_TRUE(sweep);
  for (const Scenario& scenario : sweep->scenarios) {
    const faults::Match& match = scenario.lives.at(0).plan.rules.at(0).match;
    const bool writes = match.ops == faults::op_bit(Op::kWrite);
    EXPECT_EQ(match.every, writes ? std::optional<std::uint64_t>(1) : std::nullopt)
        << scenario.point;
  }
}

TEST_F(SweepTest, PairsAreOfDifferentRanksAndTheLaterNeedNotBeReached) {
  scenario_.generator->action = faults::ErrnoAction{};
  scenario_.generator->pairs = true;
  EXPECT_THAT(points(),
              ElementsAre("rank 0 create step_2/shard-0 nth 1, rank 1 write step_2/shard-1 nth 1",
                          "rank 0 write step_2/shard-0 nth 1, rank 1 write step_2/shard-1 nth 1",
                          "rank 1 write step_2/shard-1 nth 1, rank 0 write step_2/shard-0 nth 2",
                          "rank 1 write step_2/shard-1 nth 1, rank 0 fsync step_2/shard-0 nth 1"));
  const auto sweep = make_sweep(scenario_, trace_);
  EXPECT_EQ(sweep->coverage.known, 4U);
  const auto& rules = sweep->scenarios.at(0).lives.at(0).plan.rules;
  ASSERT_EQ(rules.size(), 2U);
  EXPECT_TRUE(rules[0].required);
  EXPECT_FALSE(rules[1].required);
}

// In an operation of the rank's own it would be the rank that dies.
TEST_F(SweepTest, AKillOfTheChildHasItsPointsWhereAChildCalls) {
  KillAction kill;
  kill.target = faults::KillTarget::kChild;
  scenario_.generator->action = kill;
  EXPECT_THAT(points(), ElementsAre());
  trace_.records.at(4).caller.relation = faults::Relation::kChild;
  EXPECT_THAT(points(), ElementsAre("rank 1 write step_2/shard-1 nth 1 before"));
  const auto sweep = make_sweep(scenario_, trace_);
  EXPECT_THAT(sweep->scenarios.at(0).lives.at(0).plan.rules.at(0).match.relations,
              ElementsAre(faults::Relation::kChild));
}

TEST_F(SweepTest, EveryPhaseTakesTheMarks) {
  scenario_.generator->at = "every phase";
  ASSERT_EQ(points().size(), 1U);
  EXPECT_THAT(points().at(0), HasSubstr("rank 0 phase point"));
}

// A rule's `phase` means a mark by its own name or by its place, not by the span it lies in.
TEST_F(SweepTest, AMarkIsNamedByItsPlaceInTheSpanAndCountedAmongItsLike) {
  scenario_.generator->at = "every phase";
  const auto mark = [](const std::string& kind, const std::string& name, const std::string& phase) {
    TraceRecord made = record(Op::kPhase, 0, kind, phase);
    made.path2 = name;
    return made;
  };
  trace_.records = {mark("enter", "save 2", "save 2"), mark("point", "staged", "save 2/staged"),
                    mark("collective_enter", "world#3", "save 2/staged"),
                    mark("point", "staged", "save 2/staged"),
                    mark("leave", "save 2", "save 2/staged")};
  std::vector<std::string> marks;
  const auto swept = make_sweep(scenario_, trace_)->scenarios;
  for (const Scenario& scenario : swept) {
    const faults::Match& match = scenario.lives.at(0).plan.rules.at(0).match;
    marks.push_back(match.phase + " " + std::to_string(*match.nth));
  }
  EXPECT_THAT(marks, ElementsAre("save 2 1", "save 2/staged 1", "save 2/world#3 1",
                                 "save 2/staged 2", "save 2 2"));
}

TEST_F(SweepTest, TheRuleGoesIntoTheGeneratorsLifeAndNamesTheOperation) {
  scenario_.generator->life = 2;
  const auto sweep = make_sweep(scenario_, trace_);
  ASSERT_TRUE(sweep);
  const Scenario& last_write = sweep->scenarios.at(3);
  EXPECT_TRUE(last_write.lives.at(0).plan.rules.empty());
  const faults::Match& match = last_write.lives.at(1).plan.rules.at(0).match;
  EXPECT_EQ(match.ops, faults::op_bit(Op::kWrite));
  EXPECT_THAT(match.ranks, ElementsAre(0));
  EXPECT_EQ(match.path, "step_2/shard-0");
  EXPECT_EQ(match.phase, "save 2");
  EXPECT_EQ(match.nth, 2U);
  EXPECT_FALSE(last_write.generator.has_value());
}

// A path is matched as it is, also where it looks like a pattern.
TEST_F(SweepTest, PathsAreEscaped) {
  trace_.records = {record(Op::kUnlink, 0, "a[1]*.tmp", "save 2")};
  const auto sweep = make_sweep(scenario_, trace_);
  EXPECT_EQ(sweep->scenarios.at(0).lives.at(0).plan.rules.at(0).match.path, "a\\[1\\]\\*.tmp");
}

// Which rank finds a directory there already is chance: such a point would not come again.
TEST_F(SweepTest, FailedOperationsAreNoPoints) {
  trace_.records = {record(Op::kMkdir, 0, "step_2", "save 2")};
  trace_.records[0].error = EEXIST;
  EXPECT_TRUE(points().empty());
}

TEST_F(SweepTest, ASampleIsTheSameForTheSameSeedAndCoverageSaysIt) {
  scenario_.generator->sample = 2;
  const auto first = make_sweep(scenario_, trace_);
  const auto second = make_sweep(scenario_, trace_);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->coverage.known, 5U);
  EXPECT_EQ(first->coverage.tried, 2U);
  ASSERT_EQ(first->scenarios.size(), 2U);
  EXPECT_EQ(first->scenarios.at(0).point, second->scenarios.at(0).point);
  EXPECT_EQ(first->scenarios.at(1).name, second->scenarios.at(1).name);
}

TEST_F(SweepTest, NamesAreUnique) {
  const auto sweep = make_sweep(scenario_, trace_);
  std::set<std::string> names;
  for (const Scenario& scenario : sweep->scenarios) names.insert(scenario.name);
  EXPECT_EQ(names.size(), sweep->scenarios.size());
}

TEST_F(SweepTest, AnUnknownKindIsRefused) {
  scenario_.generator->at = "every moon";
  const auto sweep = make_sweep(scenario_, trace_);
  ASSERT_FALSE(sweep);
  EXPECT_EQ(sweep.error().code, Code::kInvalid);
}

TEST_F(SweepTest, TheCleanScenarioHasNoFaultsAndEndsWithTheGeneratorsLife) {
  scenario_.lives.at(0).plan.rules.emplace_back();
  const Scenario clean = clean_scenario(scenario_);
  EXPECT_EQ(clean.lives.size(), 1U);
  EXPECT_TRUE(clean.lives.at(0).plan.rules.empty());
  EXPECT_EQ(clean.lives.at(0).expect.outcome, Outcome::kComplete);
}

// A kill in an earlier life leaves the tree in which the points of the swept one lie.
TEST_F(SweepTest, TheCleanScenarioKeepsTheFaultsOfEarlierLives) {
  scenario_.lives.resize(2);
  scenario_.lives[0].plan.rules.emplace_back();
  scenario_.lives[0].expect.outcome = Outcome::kKilled;
  scenario_.lives[1].plan.rules.emplace_back();
  scenario_.generator->life = 2;
  const Scenario clean = clean_scenario(scenario_);
  EXPECT_EQ(clean.lives.at(0).plan.rules.size(), 1U);
  EXPECT_EQ(clean.lives.at(0).expect.outcome, Outcome::kKilled);
  EXPECT_TRUE(clean.lives.at(1).plan.rules.empty());
}

// A library that writes to a name made up anew each time (`.tmpWuRvtg`) meets its points all the
// same.
TEST_F(SweepTest, ANameThatNoOtherSaveKnowsIsAnyName) {
  scenario_.generator->at = "every write";
  trace_.records = {
      record(Op::kWrite, 0, "step_1/.tmpKKhMI9", "save 1"),
      record(Op::kWrite, 0, "step_1/shard-0", "save 1"),
      record(Op::kWrite, 0, "step_2/shard-0", "save 2"),
      record(Op::kWrite, 0, "step_2/.tmpWuRvtg", "save 2"),
  };
  const auto sweep = make_sweep(scenario_, trace_);
  ASSERT_TRUE(sweep);
  ASSERT_EQ(sweep->scenarios.size(), 2u);
  const faults::Match& match = sweep->scenarios[1].lives[0].plan.rules[0].match;
  EXPECT_EQ(match.path, "step_2/*");
  EXPECT_EQ(match.nth, 2u);  // of the writes that this name covers
  EXPECT_EQ(sweep->scenarios[0].lives[0].plan.rules[0].match.path, "step_2/shard-0");
}

}  // namespace
}  // namespace savegate::harness
