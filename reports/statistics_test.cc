#include "reports/statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace savegate::reports {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;

TEST(StatisticsTest, TwentyNineCleanRoundsExcludeOneFailureInTen) {
  EXPECT_EQ(rounds_to_exclude(0.1, 0.95), 29U);
  EXPECT_EQ(rounds_to_exclude(0.2, 0.95), 14U);
  EXPECT_EQ(rounds_to_exclude(0.01, 0.99), 459U);
}

TEST(StatisticsTest, CleanRoundsExcludeWhatTheyWereCountedFor) {
  EXPECT_LE(excluded_probability(29, 0.95), 0.1);
  EXPECT_GT(excluded_probability(28, 0.95), 0.1);
}

// Added up in exact fractions.
TEST(StatisticsTest, FishersTestIsExact) {
  EXPECT_NEAR(fisher_exact({4, 3}, {4, 1}), 0.4857143, 1e-7);
  EXPECT_NEAR(fisher_exact({10, 1}, {12, 9}), 0.0036914, 1e-7);
  EXPECT_NEAR(fisher_exact({20, 0}, {20, 10}), 0.0004359, 1e-7);
}

TEST(StatisticsTest, EqualCountsProveNothing) {
  EXPECT_NEAR(fisher_exact({40, 3}, {40, 3}), 1.0, 1e-12);
  EXPECT_NEAR(fisher_exact({40, 0}, {40, 0}), 1.0, 1e-12);
  EXPECT_NEAR(fisher_exact({40, 40}, {40, 40}), 1.0, 1e-12);
}

TEST(StatisticsTest, TheOrderOfTheTwoIsAllTheSame) {
  EXPECT_DOUBLE_EQ(fisher_exact({30, 2}, {25, 9}), fisher_exact({25, 9}, {30, 2}));
}

TEST(StatisticsTest, SeveralQuestionsCostConfidence) {
  EXPECT_THAT(
      holm_adjusted({0.04, 0.01, 0.03}),
      ElementsAre(DoubleNear(0.06, 1e-12), DoubleNear(0.03, 1e-12), DoubleNear(0.06, 1e-12)));
  EXPECT_THAT(holm_adjusted({0.7, 0.9}), ElementsAre(1.0, 1.0));
}

}  // namespace
}  // namespace savegate::reports
