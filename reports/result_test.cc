#include "reports/result.h"

#include <gtest/gtest.h>

#include "reports/example_run.h"

namespace savegate::reports {
namespace {

TEST(OverallTest, AFailureOutweighsWhatProvesNothingAndThatAPass) {
  EXPECT_EQ(overall(example_run({Outcome::kPass, Outcome::kInvalid, Outcome::kFail})),
            Outcome::kFail);
  EXPECT_EQ(overall(example_run({Outcome::kPass, Outcome::kInvalid})), Outcome::kInvalid);
  EXPECT_EQ(overall(example_run({Outcome::kPass, Outcome::kSkip})), Outcome::kPass);
}

TEST(ExitCodeTest, SaysPassedFailedOrNothingProven) {
  EXPECT_EQ(exit_code(example_run({Outcome::kPass})), 0);
  EXPECT_EQ(exit_code(example_run({Outcome::kPass, Outcome::kFail})), 1);
  EXPECT_EQ(exit_code(example_run({Outcome::kPass, Outcome::kInvalid})), 4);
}

TEST(ExitCodeTest, ARunOfNothingProvesNothing) {
  EXPECT_EQ(exit_code(example_run({})), 4);
  EXPECT_EQ(exit_code(example_run({Outcome::kSkip})), 4);
}

}  // namespace
}  // namespace savegate::reports
