#include "fusefs/timestamps.h"

#include <gtest/gtest.h>

namespace savegate::fusefs {
namespace {

struct stat at(time_t seconds, long nanoseconds) {
  struct stat attributes {};
  attributes.st_mtim = {seconds, nanoseconds};
  return attributes;
}

TEST(TimestampsTest, ASkewMovesTimesBothWays) {
  struct stat late = at(100, 500'000'000);
  apply({.skew_ns = -1'600'000'000, .granularity_ns = 1}, late);
  EXPECT_EQ(late.st_mtim.tv_sec, 98);
  EXPECT_EQ(late.st_mtim.tv_nsec, 900'000'000);
  apply({.skew_ns = 1'600'000'000, .granularity_ns = 1}, late);
  EXPECT_EQ(late.st_mtim.tv_sec, 100);
  EXPECT_EQ(late.st_mtim.tv_nsec, 500'000'000);
}

TEST(TimestampsTest, CoarseTimesAreRoundedDown) {
  struct stat file = at(101, 999'999'999);
  apply({.skew_ns = 0, .granularity_ns = 2'000'000'000}, file);
  EXPECT_EQ(file.st_mtim.tv_sec, 100);
  EXPECT_EQ(file.st_mtim.tv_nsec, 0);
}

TEST(TimestampsTest, ASkewEndsAt1970) {
  struct stat file = at(1, 0);
  apply({.skew_ns = -5'000'000'000, .granularity_ns = 1}, file);
  EXPECT_EQ(file.st_mtim.tv_sec, 0);
}

}  // namespace
}  // namespace savegate::fusefs
