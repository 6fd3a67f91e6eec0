#include "gpu/simulated_device.h"

#include <gtest/gtest.h>

#include "gpu/neighbour.h"

namespace savegate::gpu {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

class SimulatedDeviceTest : public testing::Test {
 protected:
  MemoryFacts facts() { return backend_->memory().value().value(); }

  std::unique_ptr<Backend> backend_ = open_backend("simulated", 0).value();
};

TEST_F(SimulatedDeviceTest, WhatIsFreedStaysReservedUntilItIsTrimmed) {
  backend_->allocate(8 * kMiB).value().reset();
  EXPECT_EQ(facts().allocated, 0U);
  EXPECT_EQ(facts().reserved, 8 * kMiB);
  EXPECT_EQ(facts().free, kSimulatedCapacity - 8 * kMiB);
  ASSERT_TRUE(backend_->trim());
  EXPECT_EQ(facts().reserved, 0U);
  EXPECT_EQ(facts().free, kSimulatedCapacity);
}

TEST_F(SimulatedDeviceTest, AFreedBlockServesTheSameSizeAgain) {
  backend_->allocate(8 * kMiB).value().reset();
  const Buffer again = backend_->allocate(8 * kMiB).value();
  EXPECT_EQ(facts().reserved, 8 * kMiB);
}

TEST_F(SimulatedDeviceTest, ThePeakIsThatSinceItWasLastAskedFor) {
  backend_->allocate(8 * kMiB).value().reset();
  ASSERT_TRUE(backend_->trim());
  EXPECT_EQ(facts().reserved_peak, 8 * kMiB);
  EXPECT_EQ(facts().reserved_peak, 0U);
}

TEST_F(SimulatedDeviceTest, AnAllocationThatATrimMakesRoomForIsARetry) {
  backend_->allocate(kSimulatedCapacity / 2 + kMiB).value().reset();
  const Buffer granted = backend_->allocate(kSimulatedCapacity / 2).value();
  EXPECT_EQ(facts().retries, 1U);
  EXPECT_EQ(facts().refusals, 0U);
}

TEST_F(SimulatedDeviceTest, OutOfMemoryNamesDeviceAndBytesAndIsCounted) {
  const Buffer most = backend_->allocate(kSimulatedCapacity - kMiB).value();
  const auto refused = backend_->allocate(2 * kMiB);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().error, ENOMEM);
  EXPECT_EQ(refused.error().asked, 2 * kMiB);
  EXPECT_NE(refused.error().to_string().find("device 0"), std::string::npos);
  EXPECT_EQ(facts().refusals, 1U);
  EXPECT_EQ(facts().retries, 0U);
}

TEST_F(SimulatedDeviceTest, TheProbeFindsAllThatIsFreeAndGivesItBack) {
  const Buffer held = backend_->allocate(kSimulatedCapacity / 4).value();
  Neighbour neighbour(*backend_);
  EXPECT_EQ(neighbour.probe().value(), kSimulatedCapacity / 4 * 3);
  EXPECT_EQ(facts().free, kSimulatedCapacity / 4 * 3);
}

TEST_F(SimulatedDeviceTest, TheHogLeavesItsHeadroomAndHoldsTheRest) {
  Neighbour neighbour(*backend_);
  const std::uint64_t left = neighbour.leave(100 * kMiB).value();
  EXPECT_GE(left, 100 * kMiB);
  EXPECT_LT(left, 102 * kMiB);
  EXPECT_EQ(facts().free, left);
  EXPECT_FALSE(backend_->allocate(102 * kMiB));
}

TEST(NeighbourTest, HostMemoryIsNotTaken) {
  const auto host = open_backend("cpu").value();
  EXPECT_FALSE(Neighbour(*host).probe());
}

}  // namespace
}  // namespace savegate::gpu
