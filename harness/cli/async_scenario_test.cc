// Saves beside training, experts of their own, derived weights: their suites on the sound save
// path, and the controls of the oracles that judge them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/cli/savegate_program.h"

namespace savegate::cli {
namespace {

using testing::HasSubstr;

class AsyncTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = SavegateProgram::why_not(); !why.empty()) GTEST_SKIP() << why;
  }

  SavegateProgram savegate_;
};

TEST_F(AsyncTest, TheAsynchronousSavePathPassesTheSuitesOfItsKind) {
  const Ran ran = savegate_.run("run async experts --subject reference-async");
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("12 passed, 0 failed, 0 invalid"));
}

TEST_F(AsyncTest, ASynchronousSavePathIsNotAskedForASnapshot) {
  const Ran ran = savegate_.run("run async/update-during-save");
  EXPECT_EQ(ran.status, 0) << ran.output;
}

// Two subjects in one self-test: a control may name the one that it breaks.
TEST_F(AsyncTest, TheControlsOfSnapshotsExpertsAndExportsAreCaught) {
  const Ran ran = savegate_.run(
      "selftest late-snapshot reuse-staging-early keep-staging colliding-expert-keys stale-scales");
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("5 of 5 negative controls caught"));
}

}  // namespace
}  // namespace savegate::cli
