#include "gpu/staging_pool.h"

#include <gtest/gtest.h>

namespace savegate::gpu {
namespace {

constexpr std::uint64_t kSize = 5 * 4096 + 1;

class StagingPoolTest : public testing::Test {
 protected:
  std::unique_ptr<Backend> backend_ = open_backend("cpu", 0).value();
};

TEST_F(StagingPoolTest, ABlockThatCameBackIsTakenAgain) {
  StagingPool pool(*backend_, Rounding::kExact);
  const std::byte* first = pool.take(kSize).value().data();
  const StagingBlock second = pool.take(kSize).value();
  EXPECT_EQ(second.data(), first);
  EXPECT_EQ(pool.facts().held, kSize);
}

// What M4 is about: the same use, and nearly twice the memory.
TEST_F(StagingPoolTest, ExactBlocksHoldWhatIsAskedAndPowersOfTwoMore) {
  StagingPool exact(*backend_, Rounding::kExact);
  StagingPool rounded(*backend_, Rounding::kPowerOfTwo);
  const StagingBlock one = exact.take(kSize).value();
  const StagingBlock other = rounded.take(kSize).value();
  EXPECT_EQ(exact.facts().held, kSize);
  EXPECT_EQ(rounded.facts().held, 8 * 4096U);
  EXPECT_EQ(rounded.facts().asked, kSize);
}

TEST_F(StagingPoolTest, TrimGivesBackWhatIsNotInUse) {
  StagingPool pool(*backend_, Rounding::kExact);
  const StagingBlock used = pool.take(kSize).value();
  pool.take(4096).value();
  EXPECT_EQ(pool.facts().held, kSize + 4096);
  pool.trim();
  EXPECT_EQ(pool.facts().held, kSize);
  EXPECT_EQ(pool.facts().asked, kSize);
}

TEST_F(StagingPoolTest, ABlockThatIsMovedToReturnsWhatItHad) {
  StagingPool pool(*backend_, Rounding::kExact);
  StagingBlock block = pool.take(kSize).value();
  block = pool.take(4096).value();
  EXPECT_EQ(pool.facts().asked, 4096U);
}

}  // namespace
}  // namespace savegate::gpu
