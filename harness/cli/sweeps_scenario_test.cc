// The suites that go beyond one fault in a save of two ranks, on the sound save path.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "harness/cli/savegate_program.h"
#include "harness/run/files.h"

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

// Two points of each here; all of them with `savegate run sweeps`.
TEST_F(SweepsTest, FaultsInARestoreAndARotationAndKillsInARowAreSurvived) {
  const std::string whole = "at     = \"every operation\"\n";
  auto text = harness::read_file(SAVEGATE_SOURCE_DIR "/scenarios/suites/sweeps.toml");
  ASSERT_TRUE(text);
  std::size_t sampled = 0;
  for (std::size_t at = text->find(whole); at != std::string::npos; at = text->find(whole, at)) {
    at += whole.size();
    text->insert(at, "sample = 2\n");
    ++sampled;
  }
  const std::string suite = savegate_.folder() + "/sampled.toml";
  std::ofstream(suite) << *text;
  const Ran ran = savegate_.run("run " + suite);
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_EQ(sampled, 4U);
}

}  // namespace
}  // namespace savegate::cli
