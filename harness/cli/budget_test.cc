#include "harness/cli/budget.h"

#include <gmock/gmock.h>

namespace savegate::cli {
namespace {

using harness::Scenario;
using reports::HistoryRow;
using reports::Outcome;
using testing::ElementsAre;

constexpr std::uint64_t kHour = 3'600'000'000'000;

class BudgetTest : public testing::Test {
 protected:
  void ran(const std::string& name, Outcome outcome, std::int64_t ended, double seconds = 1) {
    HistoryRow row;
    row.about = {.scenario = name, .subject = "mine", .world = 2, .device = "cpu"};
    row.outcome = outcome;
    row.ended = ended;
    row.seconds = seconds;
    latest_[row.about] = row;
  }
  Budget budget(std::uint64_t nanoseconds = kHour) const {
    return {"1h", nanoseconds, latest_, "mine", "cpu"};
  }
  static Scenario scenario(const std::string& name, const std::string& point = "") {
    Scenario made;
    made.suite = "s";
    made.name = name;
    made.point = point;
    return made;
  }
  static std::vector<std::string> names(const std::vector<Scenario>& scenarios) {
    std::vector<std::string> all;
    all.reserve(scenarios.size());
    for (const Scenario& scenario : scenarios) all.push_back(scenario.name);
    return all;
  }

  std::map<reports::About, HistoryRow> latest_;
};

TEST_F(BudgetTest, ASweepComesFirstWhereOneOfItsPointsFailedTheLastTime) {
  ran("s/passed", Outcome::kPass, 1);
  ran("s/sweep [rank 0 write a nth 1]", Outcome::kFail, 2);
  ran("s/sweep [rank 0 write b nth 1]", Outcome::kPass, 3);
  std::vector<Scenario> scenarios = {scenario("passed"), scenario("never"), scenario("sweep")};
  budget().order(scenarios);
  EXPECT_THAT(names(scenarios), ElementsAre("sweep", "never", "passed"));
}

TEST_F(BudgetTest, AnotherSubjectsHistoryDoesNotCount) {
  ran("s/b", Outcome::kFail, 1);
  std::vector<Scenario> scenarios = {scenario("a"), scenario("b")};
  Budget("1h", kHour, latest_, "other", "cpu").order(scenarios);
  EXPECT_THAT(names(scenarios), ElementsAre("a", "b"));
}

TEST_F(BudgetTest, WhatTookLongerThanIsLeftDoesNotFit) {
  ran("s/long", Outcome::kPass, 1, /*seconds=*/7200);
  EXPECT_FALSE(budget().fits(scenario("long")));
  EXPECT_TRUE(budget().fits(scenario("unknown")));
  EXPECT_FALSE(budget(0).fits(scenario("unknown")));
}

TEST_F(BudgetTest, WhatWasNotRunIsCountedAndNamed) {
  reports::RunRecord run;
  run.scenarios.push_back(budget().not_run(scenario("one")));
  for (const char* name : {"sweep-0001", "sweep-0002"})
    run.scenarios.push_back(budget().not_run(scenario(name, "rank 0 write a nth 1")));
  EXPECT_EQ(budget().account(run),
            "not run within the budget of 1h, 3: s/one, s/sweep (2 points)\n");
  EXPECT_EQ(budget().account({}), "");
}

}  // namespace
}  // namespace savegate::cli
