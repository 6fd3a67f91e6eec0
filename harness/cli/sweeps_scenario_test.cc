// The suites that go beyond one fault in a save of two ranks, on the sound save path.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "harness/cli/savegate_program.h"

namespace savegate::cli {
namespace {

using testing::HasSubstr;

class SweepsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = SavegateProgram::why_not(); !why.empty()) GTEST_SKIP() << why;
  }

  SavegateProgram savegate_;
};

TEST_F(SweepsTest, OneRankAndMoreThanTwoSaveFailAndAreKilled) {
  const Ran ran = savegate_.run("run width");
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("10 passed, 0 failed, 0 invalid"));
}

// Two points of each sweep here; all of them with `savegate run sweeps writer-child`.
TEST_F(SweepsTest, FaultsInPairsInARestoreInAChildAndInARowAreSurvived) {
  const std::string suite = savegate_.folder() + "/sampled.toml";
  std::ofstream(suite) << fmt::format(
      "name = \"sampled\"\nsummary = \"For this test.\"\nsample = 2\n"
      "include = [\"{0}/sweeps\", \"{0}/writer-child\"]\n",
      SAVEGATE_SOURCE_DIR "/scenarios/suites");
  const Ran ran = savegate_.run("run " + suite);
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("14 run: 14 passed, 0 failed, 0 invalid"));
}

}  // namespace
}  // namespace savegate::cli
