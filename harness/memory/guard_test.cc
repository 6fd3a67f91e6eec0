#include "harness/memory/guard.h"

#include <gtest/gtest.h>

#include "harness/run/files.h"
#include "harness/run/test_directory.h"

namespace savegate::harness {
namespace {

class MemoryGuardTest : public testing::Test {
 protected:
  void job_holds(std::uint64_t bytes) {
    ASSERT_TRUE(write_file(folder_.path() + "/memory.current", std::to_string(bytes) + "\n"));
  }
  void daemon_allocated(std::uint64_t bytes) {
    ASSERT_TRUE(
        write_file(daemon_.path() + "/memory.stat", "anon " + std::to_string(bytes) + "\n"));
  }
  TestDirectory folder_;
  TestDirectory daemon_;
  MemoryGuard guard_{
      {CgroupVersion::kTwo, folder_.path()}, {CgroupVersion::kTwo, daemon_.path()}, 1000};
};

TEST_F(MemoryGuardTest, UpToTheThresholdItLooksOn) {
  job_holds(1000);
  EXPECT_EQ(guard_.run(1), std::nullopt);
  EXPECT_GT(guard_.next_ns(), 1U);
  EXPECT_NE(guard_.next_ns(), UINT64_MAX);
}

TEST_F(MemoryGuardTest, BeyondItItActsOnce) {
  job_holds(1001);
  EXPECT_EQ(guard_.run(1), 1001U);
  EXPECT_EQ(guard_.next_ns(), UINT64_MAX);
  EXPECT_EQ(guard_.run(UINT64_MAX - 1), std::nullopt);
}

// Its buffers are one a thread, and its threads more on a larger node.
TEST_F(MemoryGuardTest, WhatTheFileSystemsDaemonAllocatedIsNotTheJobs) {
  job_holds(1100);
  daemon_allocated(100);
  EXPECT_EQ(guard_.run(1), std::nullopt);
  daemon_allocated(99);
  EXPECT_EQ(guard_.run(guard_.next_ns()), 1001U);
}

TEST_F(MemoryGuardTest, ACgroupThatTellsNothingIsNoReasonToKill) {
  EXPECT_EQ(guard_.run(1), std::nullopt);
}

}  // namespace
}  // namespace savegate::harness
