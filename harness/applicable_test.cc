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

faults::Rule rule_of(const std::string& plan) {
  return faults::parse_plan(plan, "a test")->rules.front();
}

// Where rank 0 alone saves, there is no write of rank 1 for a rule to meet.
TEST(ApplicableTest, WhatHappensToARanksFilesHappensToThoseOfARankThatWrites) {
  LifeSpec life;
  life.plan.rules = {
      rule_of("[[rule]]\nmatch = { op = 'write', rank = 1 }\naction = { errno = 'EIO' }\n"),
      rule_of("[[rule]]\nmatch = { op = 'write', rank = 0 }\naction = { errno = 'EIO' }\n"),
      rule_of("[[rule]]\nmatch = { op = 'read', rank = 1 }\naction = { errno = 'EIO' }\n"),
      rule_of("[[rule]]\nmatch = { op = 'phase', phase = 'x', rank = 1 }\naction = { hang = true "
              "}\n")};
  life.plan.budgets = {{.name = "quota", .ranks = {1}, .limit = 1, .inodes = {}}};
  life.tamper = {{.rank = 1, .other_rank = {}, .path = "", .at = {}}};
  Subject subject = subject_with_shards();
  subject.writers = {0, 7};
  const LifeSpec resolved = resolved_for(scenario_with(life), subject).lives.front();
  ASSERT_EQ(resolved.plan.rules.size(), 3U);
  EXPECT_EQ(resolved.plan.rules[0].match.ranks, std::vector<int>{0});
  EXPECT_EQ(resolved.plan.rules[0].name, "errno EIO on op = \"write\", rank = 0");
  EXPECT_EQ(resolved.plan.rules[1].match.ranks, std::vector<int>{1});
  EXPECT_EQ(resolved.plan.rules[2].match.ranks, std::vector<int>{1});
  EXPECT_EQ(resolved.plan.budgets.front().ranks, std::vector<int>{0});
  EXPECT_EQ(resolved.tamper.front().rank, 0);
  EXPECT_EQ(subject.shards_in(2), 1U);
  EXPECT_EQ(subject.shards_in(8), 2U);
}

TEST(ApplicableTest, ABlackBoxTellsOfNoPhaseThatAFaultCouldWaitFor) {
  LifeSpec life;
  life.plan.rules = {rule_of(
      "[[rule]]\nmatch = { op = 'write', phase = 'save 2' }\naction = { errno = 'EIO' }\n")};
  Subject subject = subject_with_shards();
  EXPECT_EQ(inapplicable(scenario_with(life), subject, "cpu"), "");
  subject.events = false;
  EXPECT_NE(inapplicable(scenario_with(life), subject, "cpu"), "");
}

TEST(ApplicableTest, OneWriterHasNoFilesToExchange) {
  LifeSpec life;
  life.tamper = {{.kind = Tamper::Kind::kSwap, .rank = 0, .other_rank = 1, .path = "", .at = {}}};
  Subject subject = subject_with_shards();
  EXPECT_EQ(inapplicable(scenario_with(life), subject, "cpu"), "");
  subject.writers = {0};
  EXPECT_NE(inapplicable(scenario_with(life), subject, "cpu"), "");
}

TEST(ApplicableTest, AScenarioThatWasNotRunSaysWhy) {
  const auto result = not_run(scenario_with({}), reports::Outcome::kSkip, "no pointer");
  EXPECT_EQ(result.outcome, reports::Outcome::kSkip);
  ASSERT_EQ(result.verdicts.size(), 1U);
  EXPECT_EQ(result.verdicts.front().summary, "not run: no pointer");
}

}  // namespace
}  // namespace savegate::harness
