// `savegate loop` on saves that fail now and then.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "harness/cli/savegate_program.h"

namespace savegate::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

class LoopTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = SavegateProgram::why_not(); !why.empty()) GTEST_SKIP() << why;
  }
  // A scenario of one save under one rule, which need not fire.
  std::string flaky(const std::string& match) {
    std::string path = savegate_.folder() + "/flaky.toml";
    std::ofstream(path) << "name = \"flaky\"\nsummary = \"For a test.\"\n[[scenario]]\n"
                           "name = \"one\"\nsummary = \"One save.\"\n[[scenario.life]]\n"
                           "until = \"save 1\"\n"
                           "rules = [{ match = { op = \"write\", role = \"shard\", " +
                               match + " }, action = { errno = \"EIO\" }, required = false }]\n";
    return path;
  }
  std::string latest(const std::string& name) {
    return savegate_.shell("cat " + savegate_.store() + "/latest/" + name).output;
  }

  SavegateProgram savegate_;
};

TEST_F(LoopTest, TheFirstFailureEndsItAndItsSceneIsKept) {
  const Ran ran = savegate_.run("loop --jobs 1 --rounds 29 " + flaky("probability = 0.05"));
  EXPECT_EQ(ran.status, 1) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr(" failed; "));
  EXPECT_THAT(ran.output, HasSubstr("/scenario.json"));
  EXPECT_THAT(latest("loop.json"), HasSubstr(R"("failures": 1)"));
  EXPECT_THAT(latest("result.json"), HasSubstr("--rounds 29 --confidence 0.95"));
}

TEST_F(LoopTest, CleanRoundsSayWhatTheyExclude) {
  const Ran ran = savegate_.run("loop --failure-probability 0.5 smoke/clean");
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("5 clean rounds: with 95 % confidence a save fails less often "
                                    "than once in 2.2"));
}

TEST_F(LoopTest, TheFactorThatChangesTheFailureRateIsNamedAndTheOtherIsNot) {
  const Ran ran = savegate_.run("loop --rounds 6 --vary state=1MiB,8MiB --vary world=1,2 " +
                                flaky("offset = [\"2MiB\"]"));
  EXPECT_EQ(ran.status, 1) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("baseline: 0 of 6 rounds failed"));
  EXPECT_THAT(ran.output,
              HasSubstr("state=8MiB: 6 of 6 rounds failed, the failure rate changes with it"));
  EXPECT_THAT(ran.output,
              HasSubstr("world=2: 0 of 6 rounds failed, nothing can be said of its influence"));
}

TEST_F(LoopTest, AnUnknownFactorIsNamedWithTheNearestOne) {
  const Ran ran = savegate_.run("loop smoke/clean --vary wrld=1,2");
  EXPECT_EQ(ran.status, 2);
  EXPECT_THAT(ran.output, HasSubstr("did you mean `world`?"));
}

TEST_F(LoopTest, ASuiteIsRefusedForItsScenariosFailEachInItsOwnWay) {
  const Ran ran = savegate_.run("loop smoke");
  EXPECT_EQ(ran.status, 2);
  EXPECT_THAT(ran.output, HasSubstr("name one of them"));
}

TEST_F(LoopTest, ASweepIsRefused) {
  const Ran ran = savegate_.run("loop kill-sweep/one-rank");
  EXPECT_EQ(ran.status, 2);
  EXPECT_THAT(ran.output, HasSubstr("is a sweep"));
  EXPECT_THAT(ran.output, Not(HasSubstr("store:")));
}

}  // namespace
}  // namespace savegate::cli
