#include "harness/cli/experiment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

namespace savegate::cli {
namespace {

using reports::Tally;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr double kConfidence = 0.95;

// What an experiment finds where the arms fail with these probabilities.
std::vector<Comparison> simulated(const std::vector<Arm>& arms, const std::vector<double>& fails,
                                  std::uint64_t rounds, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform;
  std::vector<Tally> tallies(arms.size());
  for (const Trial& trial : schedule(arms.size(), rounds, seed)) {
    ++tallies[trial.arm].rounds;
    if (uniform(random) < fails[trial.arm]) ++tallies[trial.arm].failures;
  }
  return compare_arms(arms, tallies);
}

TEST(ExperimentTest, AFactorHasABaselineAndOthers) {
  const auto factor = parse_factor("writers=1,8,16");
  ASSERT_TRUE(factor);
  EXPECT_EQ(factor->name, "writers");
  EXPECT_THAT(factor->values, ElementsAre("1", "8", "16"));
}

TEST(ExperimentTest, WhatCannotBeComparedIsRefused) {
  for (const char* text :
       {"writers", "=1,2", "writers=1", "writers=1,1", "writers=1,", "writers=,1"})
    EXPECT_FALSE(parse_factor(text)) << text;
}

TEST(ExperimentTest, AnArmDiffersFromTheBaselineInOneFactor) {
  const auto arms = arms_of({{"writers", {"1", "8"}}, {"staging", {"pinned", "pageable", "none"}}});
  ASSERT_EQ(arms.size(), 4U);
  EXPECT_EQ(arms[0].factor, "");
  EXPECT_EQ(arms[1].factor + arms[1].value, "writers8");
  EXPECT_EQ(arms[2].factor + arms[2].value, "stagingpageable");
  EXPECT_EQ(arms[3].factor + arms[3].value, "stagingnone");
}

TEST(ExperimentTest, EveryRoundRunsEachArmOnce) {
  std::map<std::uint64_t, std::vector<std::size_t>> rounds;
  for (const Trial& trial : schedule(4, 50, 7)) rounds[trial.round].push_back(trial.arm);
  ASSERT_EQ(rounds.size(), 50U);
  for (const auto& [round, arms] : rounds)
    EXPECT_THAT(arms, testing::UnorderedElementsAre(0, 1, 2, 3));
}

TEST(ExperimentTest, TheOrderOfARoundIsDrawn) {
  std::map<std::vector<std::size_t>, int> orders;
  const auto trials = schedule(3, 600, 3);
  for (std::size_t i = 0; i < trials.size(); i += 3)
    ++orders[{trials[i].arm, trials[i + 1].arm, trials[i + 2].arm}];
  EXPECT_EQ(orders.size(), 6U);
  for (const auto& [order, times] : orders) EXPECT_GT(times, 60);
}

TEST(ExperimentTest, AGuiltyFactorIsNamed) {
  const auto arms = arms_of({{"writers", {"1", "8"}}, {"backing", {"/a", "/b"}}});
  int named = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    const auto found = simulated(arms, {0.02, 0.5, 0.02}, 40, seed);
    if (found[0].chance < 1 - kConfidence && found[1].chance >= 1 - kConfidence) ++named;
  }
  EXPECT_GE(named, 95);
}

TEST(ExperimentTest, AnInnocentFactorIsSeldomAccused) {
  const auto arms = arms_of({{"writers", {"1", "8", "16"}}, {"backing", {"/a", "/b"}}});
  int accused = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    bool any = false;
    for (const Comparison& each : simulated(arms, {0.3, 0.3, 0.3, 0.3}, 30, seed))
      any = any || each.chance < 1 - kConfidence;
    if (any) ++accused;
  }
  EXPECT_LE(accused, 10);  // 5 % of 200
}

TEST(ExperimentTest, TheConclusionSaysWhatItRestsOn) {
  const std::vector<Arm> arms = {{}, {"writers", "8"}, {"backing", "/b"}};
  const std::vector<Tally> tallies = {{40, 1}, {40, 20}, {40, 2}};
  const std::string text = conclusion(tallies[0], compare_arms(arms, tallies), kConfidence);
  EXPECT_THAT(text, HasSubstr("baseline: 1 of 40 rounds failed"));
  EXPECT_THAT(text,
              HasSubstr("writers=8: 20 of 40 rounds failed, the failure rate changes with it"));
  EXPECT_THAT(text,
              HasSubstr("backing=/b: 2 of 40 rounds failed, nothing can be said of its influence"));
  EXPECT_THAT(text, HasSubstr("Holm"));
}

}  // namespace
}  // namespace savegate::cli
