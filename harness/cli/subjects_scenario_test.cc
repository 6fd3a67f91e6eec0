// The subjects in Python that come with savegate, each judged end to end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "harness/cli/savegate_program.h"

namespace savegate::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

class SubjectsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = SavegateProgram::why_not(); !why.empty()) GTEST_SKIP() << why;
  }
  SavegateProgram savegate_;
};

TEST_F(SubjectsTest, APlainNumPyScriptThatPublishesInOrderPasses) {
  const Ran ran = savegate_.run(
      "run smoke/clean smoke/enospc-mid-shard smoke/flipped-shard --subject numpy --jobs 2");
  if (ran.status == 3) GTEST_SKIP() << ran.output;
  EXPECT_EQ(ran.status, 0) << ran.output;
}

// PyTorch's own report of a full disk: both ranks fail, and nothing says why.
TEST_F(SubjectsTest, DcpOnAFullDiskFailsTogetherAndNeverNamesTheError) {
  const Ran ran = savegate_.run("run smoke/enospc-mid-shard --subject torch-dcp");
  if (ran.status == 3) GTEST_SKIP() << ran.output;
  EXPECT_EQ(ran.status, 1) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("FAIL F7"));
  EXPECT_THAT(ran.output, Not(HasSubstr("FAIL C1")));
}

class SoundSubjectTest : public SubjectsTest, public testing::WithParamInterface<const char*> {};

// In new processes: what each framework saves, it restores bit by bit, and trains on from it alike.
TEST_P(SoundSubjectTest, WithoutAFaultAFrameworkRestoresWhatItSaved) {
  const Ran ran = savegate_.run(std::string("run smoke/clean --subject ") + GetParam());
  if (ran.status == 3) GTEST_SKIP() << ran.output;
  EXPECT_EQ(ran.status, 0) << ran.output;
}

INSTANTIATE_TEST_SUITE_P(Subjects, SoundSubjectTest, testing::Values("safetensors", "transformers"),
                         [](const auto& name) { return std::string(name.param); });

// Accelerate's own choice: a file of random states that cannot be read is passed over.
TEST_F(SubjectsTest, AccelerateGoesOnWithFreshRandomNumbersWhereItsFileIsCut) {
  const Ran ran = savegate_.run("run smoke/kill-mid-shard --subject accelerate");
  if (ran.status == 3) GTEST_SKIP() << ran.output;
  EXPECT_EQ(ran.status, 1) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("FAIL C10"));
  EXPECT_THAT(ran.output, HasSubstr("`rng.torch`"));
}

// The call returns before the numbers are text: the checkpoint of step 4 has the counter of step 6.
TEST_F(SubjectsTest, OrbaxSavesNumbersAsTheyAreOnceItsDirectoriesAreMade) {
  const Ran ran = savegate_.run("run async/late-start --subject orbax");
  if (ran.status == 3) GTEST_SKIP() << ran.output;
  EXPECT_EQ(ran.status, 1) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("FAIL G5"));
  EXPECT_THAT(ran.output, HasSubstr("`scheduler.rate` is that of step 6"));
}

// docs/subject-contract.md shows the diff.
TEST_F(SubjectsTest, AnExistingScriptIsPutUnderTestInUnderTwentyAddedLines) {
  const std::string folder = savegate_.folder() + "/training";
  const Ran applied =
      savegate_.shell("cp -r " SAVEGATE_SOURCE_DIR "/docs/examples/training " + folder + " && cd " +
                      folder + " && git apply under-test.diff && grep -c '^+' under-test.diff");
  ASSERT_EQ(applied.status, 0) << applied.output;
  EXPECT_LT(std::stoi(applied.output), 20);
  const Ran ran = savegate_.run("run smoke/clean --subject " + folder + "/subject.toml");
  EXPECT_EQ(ran.status, 0) << ran.output;
}

// Without its own subject.toml and without a word: files and processes are judged all the same.
TEST_F(SubjectsTest, TheScriptAsItWasIsABlackBoxAndTheReportSaysWhatWasNotJudged) {
  const Ran ran = savegate_.run(
      "run smoke/clean -- sh -c 'cd $SAVEGATE_DIR && exec python3 " SAVEGATE_SOURCE_DIR
      "/docs/examples/training/train.py'");
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("not judged: F1: "));
}

}  // namespace
}  // namespace savegate::cli
