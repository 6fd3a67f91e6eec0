#include "faults/delays.h"

#include <gtest/gtest.h>

#include "faults/random.h"

namespace savegate::faults {
namespace {

constexpr double kMs = 1e6;

// The mean of many draws, in milliseconds.
double mean(const DelayAction& delay) {
  constexpr std::uint64_t kDraws = 20'000;
  double sum = 0;
  for (std::uint64_t i = 0; i < kDraws; ++i) {
    sum += static_cast<double>(draw_delay(delay, random_unit(1, 2, 3, i), random_unit(4, 5, 6, i)));
  }
  return sum / kDraws / kMs;
}

TEST(DelaysTest, HaveTheMeansOfTheirDistributions) {
  EXPECT_EQ(mean({.nanoseconds = 7'000'000}), 7);
  EXPECT_NEAR(mean({.nanoseconds = 10'000'000, .spread = Spread::kUniform, .to_ns = 30'000'000}),
              20, 0.5);
  EXPECT_NEAR(mean({.nanoseconds = 20'000'000, .spread = Spread::kExponential}), 20, 1);
  EXPECT_NEAR(
      mean({.nanoseconds = 20'000'000, .spread = Spread::kNormal, .deviation_ns = 2'000'000}), 20,
      0.5);
  EXPECT_NEAR(mean({.nanoseconds = 10'000'000, .spread = Spread::kPareto, .shape = 3}), 15, 1);
}

TEST(DelaysTest, NormalIsNeverNegative) {
  const DelayAction wide{
      .nanoseconds = 1, .spread = Spread::kNormal, .deviation_ns = 1'000'000'000};
  EXPECT_EQ(draw_delay(wide, 0.5, 0.5), 0U);
}

TEST(DelaysTest, AHeavyTailDoesNotWrapAround) {
  const DelayAction heavy{.nanoseconds = 1'000'000'000, .spread = Spread::kPareto, .shape = 0.01};
  EXPECT_EQ(draw_delay(heavy, 0.999'999, 0), UINT64_MAX);
}

TEST(DelaysTest, LinkIsFreeAgainAfterAPause) {
  std::uint64_t free_ns = 0;
  EXPECT_EQ(pass_link(free_ns, 1'000'000'000, 100, 50), 150U);
  EXPECT_EQ(pass_link(free_ns, 1'000'000'000, 100, 60), 250U);
  EXPECT_EQ(pass_link(free_ns, 1'000'000'000, 100, 1'000), 1'100U);
}

}  // namespace
}  // namespace savegate::faults
