// The subjects in Python that come with savegate, each judged end to end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace savegate::cli
