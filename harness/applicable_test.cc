#include "harness/applicable.h"

#include <gtest/gtest.h>

namespace savegate::harness {
namespace {

Scenario scenario_with(const LifeSpec& life) {
  Scenario scenario;
  scenario.suite = "tests";
  scenario.name = "one";
  scenario.requirements = {"C7"};
  scenario.lives = {life};
  return scenario;
}

Subject subject_with_shards() {
  Subject subject;
  subject.layout.shard = {"shard-*"};
  return subject;
}

TEST(ApplicableTest, AFileThatTheLayoutDoesNotNameCannotBeTamperedWith) {
  LifeSpec life;
  life.tamper = {{.role = faults::Role::kPointer, .other_rank = {}, .path = "", .at = {}}};
  EXPECT_NE(inapplicable(scenario_with(life), subject_with_shards(), "cpu"), "");
  life.tamper.front().role = faults::Role::kShard;
  EXPECT_EQ(inapplicable(scenario_with(life), subject_with_shards(), "cpu"), "");
}

TEST(ApplicableTest, ANeighbourNeedsADeviceWithMemoryOfItsOwn) {
  LifeSpec life;
  life.wake_probe = true;
  EXPECT_NE(inapplicable(scenario_with(life), subject_with_shards(), "cpu"), "");
  EXPECT_EQ(inapplicable(scenario_with(life), subject_with_shards(), "cuda"), "");
}

TEST(ApplicableTest, AScenarioMayBeWrittenForSomeDevices) {
  Scenario scenario = scenario_with({});
  scenario.devices = {"cpu", "simulated"};
  EXPECT_EQ(inapplicable(scenario, subject_with_shards(), "cpu"), "");
  EXPECT_EQ(inapplicable(scenario, subject_with_shards(), "cuda"),
            "it is written for --device cpu or simulated");
}

TEST(ApplicableTest, ALimitOfMemoryIsOfASubjectWithItsVariables) {
  LifeSpec life;
  life.memory.bytes = 1;
  Scenario scenario = scenario_with(life);
  scenario.variables["state"] = "1MiB";
  Subject subject = subject_with_shards();
  EXPECT_NE(inapplicable(scenario, subject, "cpu"), "");
  subject.variables["state"] = "8MiB";
  EXPECT_EQ(inapplicable(scenario, subject, "cpu"), "");
}

TEST(ApplicableTest, MemoryIsNotLimitedThroughALauncher) {
  LifeSpec life;
  life.memory.bytes = 1;
  Subject subject = subject_with_shards();
  EXPECT_EQ(inapplicable(scenario_with(life), subject, "cpu"), "");
  subject.launcher = "torchrun";
  EXPECT_NE(inapplicable(scenario_with(life), subject, "cpu"), "");
}

TEST(ApplicableTest, ARuleOnAFileThatTheLayoutDoesNotNameCannotFire) {
  LifeSpec life;
  faults::Rule rule;
  rule.match.role = faults::Role::kMarker;
  life.plan.rules = {rule};
  EXPECT_NE(inapplicable(scenario_with(life), subject_with_shards(), "cpu"), "");
  life.plan.rules.front().required = false;
  EXPECT_EQ(inapplicable(scenario_with(life), subject_with_shards(), "cpu"), "");
}

// Where nothing is synced, that a power loss takes it is no news.
TEST(ApplicableTest, APowerLossIsForThoseWhoClaimThatTheySync) {
  LifeSpec life;
  faults::Rule rule;
  rule.action = faults::LoseAction{};
  life.plan.rules = {rule};
  Subject subject = subject_with_shards();
  EXPECT_NE(inapplicable(scenario_with(life), subject, "cpu"), "");
  subject.claims.durable = true;
  EXPECT_EQ(inapplicable(scenario_with(life), subject, "cpu"), "");
}

TEST(ApplicableTest, AChangeIsMadeInTheSubjectsOwnTerms) {
  LifeSpec life;
  life.change = "data";
  Subject subject = subject_with_shards();
  EXPECT_NE(inapplicable(scenario_with(life), subject, "cpu"), "");
  subject.changes["data"] = "CORPUS=a=b";
  EXPECT_EQ(inapplicable(scenario_with(life), subject, "cpu"), "");
  const Scenario resolved = resolved_for(scenario_with(life), subject);
  EXPECT_EQ(resolved.lives.front().env.at("CORPUS"), "a=b");
}

TEST(ApplicableTest, AScenarioThatWasNotRunSaysWhy) {
  const auto result = not_run(scenario_with({}), reports::Outcome::kSkip, "no pointer");
  EXPECT_EQ(result.outcome, reports::Outcome::kSkip);
  ASSERT_EQ(result.verdicts.size(), 1U);
  EXPECT_EQ(result.verdicts.front().summary, "not run: no pointer");
}

}  // namespace
}  // namespace savegate::harness
