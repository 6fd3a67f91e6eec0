#include "harness/cli/reduction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace savegate::cli {
namespace {

using reports::Outcome;
using testing::ElementsAre;
using testing::IsEmpty;

harness::Scenario scenario_of(const std::string& lives) {
  const auto suite = harness::parse_suite(
      "name = 's'\nsummary = 's'\n[[scenario]]\nname = 'one'\nsummary = 's'\nworld = 4\n" + lives,
      "s.toml");
  EXPECT_TRUE(suite) << suite.error().to_string();
  return suite->scenarios.front();
}

const std::string kTwoLives = R"(
[[scenario.life]]
until = "save 1"
rules = [{ name = "a", action = { errno = "EIO" } }, { name = "b", action = { hang = true } }]
budgets = [{ name = "c", limit = "1MiB" }]
hog = { at = "b", headroom = "1MiB" }
[[scenario.life]]
until = "save 2"
rules = [{ name = "d", match = { rank = 1 }, action = { errno = "EIO" } }, { name = "e", action = { errno = "EIO" } }]
)";

std::vector<std::string> names_of(const harness::Scenario& scenario) {
  std::vector<std::string> names;
  for (const harness::LifeSpec& life : scenario.lives) {
    for (const auto& rule : life.plan.rules) names.push_back(rule.name);
    for (const auto& budget : life.plan.budgets) names.push_back(budget.name);
  }
  return names;
}

reports::ScenarioResult result_of(Outcome outcome, const std::vector<std::string>& failed,
                                  const std::vector<std::string>& invalid = {}) {
  reports::ScenarioResult result;
  result.outcome = outcome;
  for (const auto& id : failed) result.verdicts.push_back({id, Outcome::kFail, "", {}});
  for (const auto& id : invalid) result.verdicts.push_back({id, Outcome::kInvalid, "", {}});
  return result;
}

TEST(ReductionTest, WhatIsNotKeptGoesAndTheHogsRuleStays) {
  const harness::Scenario scenario = scenario_of(kTwoLives);
  const auto items = plan_items(scenario);
  ASSERT_EQ(items.size(), 4u);
  EXPECT_THAT(names_of(with_items(scenario, items, {0, 1, 2, 3})),
              ElementsAre("a", "b", "c", "d", "e"));
  EXPECT_THAT(names_of(with_items(scenario, items, {3})), ElementsAre("b", "e"));
  EXPECT_THAT(names_of(with_items(scenario, items, {})), ElementsAre("b"));
}

// Of a scenario that asks for a failure and causes none, anybody fails.
TEST(ReductionTest, ALifeThatAsksForAFailureKeepsARequiredRule) {
  const harness::Scenario whole = scenario_of(R"(
[[scenario.life]]
until = "save 1"
expect = { outcome = "fail-together" }
rules = [{ name = "late", required = false, action = { delay = "1ms" } }, { name = "full", action = { errno = "ENOSPC" } }]
budgets = [{ name = "quota", limit = "1MiB" }]
)");
  const auto items = plan_items(whole);
  const auto keeps = [&](const std::vector<std::size_t>& kept) {
    return keeps_its_causes(with_items(whole, items, kept), whole);
  };
  EXPECT_TRUE(keeps({1}));
  EXPECT_TRUE(keeps({2}));
  EXPECT_FALSE(keeps({0}));
  EXPECT_FALSE(keeps({}));
}

TEST(ReductionTest, ARefusalKeepsTheRuleOfTheLifeBeforeThatCausesIt) {
  const std::string before =
      "\n[[scenario.life]]\nuntil = 'save 1'\nrules = [{ name = 'torn', "
      "action = { errno = 'EIO' } }]\n[[scenario.life]]\nuntil = 'save 2'\n"
      "expect = { outcome = 'refuse-together' }\n";
  const harness::Scenario caused = scenario_of(before);
  EXPECT_FALSE(keeps_its_causes(with_items(caused, plan_items(caused), {}), caused));
  const harness::Scenario tampered = scenario_of(before + "tamper = [{ kind = 'remove' }]\n");
  EXPECT_TRUE(keeps_its_causes(with_items(tampered, plan_items(tampered), {}), tampered));
}

TEST(ReductionTest, ALifeThatIsToCompleteNeedsNoRule) {
  const harness::Scenario whole = scenario_of(kTwoLives);
  EXPECT_TRUE(keeps_its_causes(with_items(whole, plan_items(whole), {}), whole));
}

TEST(ReductionTest, EveryRankThatIsNamedIsThereInASmallerWorld) {
  EXPECT_THAT(worlds_to_try(scenario_of(kTwoLives), {}), ElementsAre(2, 3, 4));
}

TEST(ReductionTest, OnlyWorldsThatTheSubjectRunsWithAreTried) {
  harness::Subject subject;
  subject.worlds = {1, 3, 4, 8};
  EXPECT_THAT(worlds_to_try(scenario_of(kTwoLives), subject), ElementsAre(3, 4));
}

TEST(ReductionTest, ASmallerStateIsAPowerOfTwo) {
  harness::Subject subject;
  subject.variables["state"] = "20KiB";
  EXPECT_THAT(states_to_try(scenario_of(kTwoLives), subject),
              ElementsAre("4KiB", "8KiB", "16KiB", "20KiB"));
}

TEST(ReductionTest, AStateWithoutASizeIsLeftAlone) {
  harness::Subject subject;
  EXPECT_THAT(states_to_try(scenario_of(kTwoLives), subject), IsEmpty());
  subject.variables["state"] = "large";
  EXPECT_THAT(states_to_try(scenario_of(kTwoLives), subject), IsEmpty());
}

TEST(ReductionTest, AnotherRequirementIsAnotherWay) {
  const auto before = result_of(Outcome::kFail, {"C1", "F7"});
  EXPECT_TRUE(fails_in_the_same_way(before, result_of(Outcome::kFail, {"F7", "C1"})));
  EXPECT_FALSE(fails_in_the_same_way(before, result_of(Outcome::kFail, {"F7"})));
  EXPECT_FALSE(fails_in_the_same_way(before, result_of(Outcome::kPass, {})));
}

TEST(ReductionTest, WhatWasProvenMustNotBecomeInvalid) {
  const auto before = result_of(Outcome::kFail, {"C1"}, {"H1"});
  EXPECT_TRUE(fails_in_the_same_way(before, result_of(Outcome::kFail, {"C1"}, {"H1"})));
  EXPECT_TRUE(fails_in_the_same_way(before, result_of(Outcome::kFail, {"C1"})));
  EXPECT_FALSE(fails_in_the_same_way(before, result_of(Outcome::kFail, {"C1"}, {"F7"})));
  EXPECT_FALSE(fails_in_the_same_way(before, result_of(Outcome::kInvalid, {}, {"H1"})));
}

}  // namespace
}  // namespace savegate::cli
