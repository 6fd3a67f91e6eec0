#include "harness/oracles/trend.h"

#include <gtest/gtest.h>

namespace savegate::harness {
namespace {

using Points = std::vector<std::pair<double, double>>;

TEST(TrendTest, ALineHasItsSlope) {
  EXPECT_DOUBLE_EQ(trend_of({{1, 5}, {2, 7}, {4, 11}}).slope, 2);
}

// Every fourth sample was taken in the middle of a save.
TEST(TrendTest, OutliersOnAFlatSeriesAreNoTrend) {
  Points points;
  for (int i = 0; i < 20; ++i) points.emplace_back(i, i % 4 == 3 ? 30 : 10);
  EXPECT_DOUBLE_EQ(trend_of(points).slope, 0);
  EXPECT_LE(trend_of(points).lower_quartile, 0);
}

TEST(TrendTest, OutliersDoNotHideASteadyRise) {
  Points points;
  for (int i = 0; i < 20; ++i) points.emplace_back(i, i + (i % 4 == 3 ? 30 : 10));
  EXPECT_NEAR(trend_of(points).slope, 1, 0.5);
  EXPECT_GT(trend_of(points).lower_quartile, 0);
}

// A pool that grew once.
TEST(TrendTest, OneStepIsNoSteadyRise) {
  Points points;
  for (int i = 0; i < 20; ++i) points.emplace_back(i, i < 5 ? 0 : 100);
  EXPECT_DOUBLE_EQ(trend_of(points).slope, 0);
}

TEST(TrendTest, OnePointHasNoTrend) { EXPECT_EQ(trend_of({{1, 5}}).slope, 0); }

}  // namespace
}  // namespace savegate::harness
