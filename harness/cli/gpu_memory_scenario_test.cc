// The memory of devices, on simulated ones: the probe, the hog, and the controls of the oracles
// that judge what they find.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/cli/savegate_program.h"

namespace savegate::cli {
namespace {

using testing::HasSubstr;

const std::string kSuite = std::string(SAVEGATE_SOURCE_DIR) + "/scenarios/suites/gpu-memory.toml";

class GpuMemoryTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = SavegateProgram::why_not(); !why.empty()) GTEST_SKIP() << why;
  }

  SavegateProgram savegate_;
};

// With less state than a real device's blocks ask for.
TEST_F(GpuMemoryTest, TheSuitePassesOnSimulatedDevices) {
  const std::string small = savegate_.folder() + "/gpu-memory.toml";
  const Ran made = savegate_.shell("sed 's/rank_state = \"[0-9]*MiB\"/rank_state = \"24MiB\"/' " +
                                   kSuite + " > " + small);
  ASSERT_EQ(made.status, 0) << made.output;
  const Ran ran = savegate_.run("run " + small + " --device simulated");
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("5 passed, 0 failed, 0 invalid"));
}

TEST_F(GpuMemoryTest, ARetryThatIsCalledTheEndIsCaught) {
  const Ran ran = savegate_.run("selftest retry-is-out-of-memory --device simulated");
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("1 of 1 negative controls caught"));
}

TEST_F(GpuMemoryTest, WithoutADeviceItsControlsAreCountedAsSkipped) {
  const Ran ran = savegate_.run("selftest keep-pool-after-load");
  EXPECT_EQ(ran.status, 4) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("it needs --device cuda or simulated"));
  EXPECT_THAT(ran.output, HasSubstr("0 of 0 negative controls caught and 1 skipped"));
}

TEST_F(GpuMemoryTest, WithoutADeviceItsScenariosAreSkippedWithTheReason) {
  const Ran ran = savegate_.run("run gpu-memory/wake-after-save");
  EXPECT_THAT(ran.output, HasSubstr("it needs a device with memory of its own"));
}

}  // namespace
}  // namespace savegate::cli
