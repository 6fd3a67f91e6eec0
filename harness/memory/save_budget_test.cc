#include "harness/memory/save_budget.h"

#include <gtest/gtest.h>

#include "harness/run/files.h"
#include "harness/run/test_directory.h"

namespace savegate::harness {
namespace {

CheckpointSize checkpoint() {
  CheckpointSize size;
  size.files = 2;
  size.file_bytes = 1100;
  size.expanded = 1000;
  return size;
}

TEST(SaveBudgetTest, ThePeakIsTheSumOfItsTerms) {
  KnownTerms known;
  known.resident = 10;
  known.staging = 200;
  known.sleeping = 3000;
  known.others = 40'000;
  known.limit = 100'000;
  known.threshold = 0.5;
  const Budget budget = budget_of(checkpoint(), known);
  EXPECT_EQ(budget.peak(), 10U + 200 + 1100 + 3000 + 40'000);
  EXPECT_TRUE(budget.complete());
  EXPECT_EQ(budget.allowed(), 50'000U);
}

TEST(SaveBudgetTest, WhatIsNotToldIsEstimatedFromTheStateOrNotObtained) {
  const Budget budget = budget_of(checkpoint(), {});
  EXPECT_EQ(budget.terms[0].bytes, 1000U);
  EXPECT_EQ(budget.terms[0].source, Source::kEstimated);
  EXPECT_EQ(budget.terms[3].source, Source::kNotObtained);
  EXPECT_FALSE(budget.complete());
}

Result<std::string> nobody(const std::string& path) { return fail(unavailable("nobody", path)); }

class TorchCheckpointTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(write_file(directory_.path() + "/.metadata", "\x80\x04"));
    ASSERT_TRUE(write_file(directory_.path() + "/__0_0.distcp", "12345"));
  }
  CheckpointSize measured(Result<std::string> told) {
    const auto size = measure_checkpoint(directory_.path(), [&](const std::string& path) {
      EXPECT_EQ(path, directory_.path() + "/.metadata");
      return told;
    });
    EXPECT_TRUE(size);
    return size.value_or(CheckpointSize{});
  }
  TestDirectory directory_;
};

TEST_F(TorchCheckpointTest, ItsMetadataTellsTheTensors) {
  const CheckpointSize size = measured("bfloat16 600 2\nfloat32 400 1");
  EXPECT_EQ(size.not_obtained, "");
  EXPECT_EQ(size.file_bytes, 7U);
  EXPECT_EQ(size.expanded, 1000U);
  EXPECT_EQ(size.tensors, 3U);
  EXPECT_EQ(size.expanded_by_dtype.at("bfloat16"), 600U);
  EXPECT_EQ(budget_of(size, {}).terms[0].bytes, 1000U);
}

TEST_F(TorchCheckpointTest, MetadataThatCannotBeReadIsNotObtainedWithTheReason) {
  const CheckpointSize size = measured(fail(unavailable("it failed", "python3")));
  EXPECT_NE(size.not_obtained.find("it failed"), std::string::npos);
  EXPECT_EQ(budget_of(size, {}).terms[0].source, Source::kNotObtained);
  EXPECT_NE(measured("no lines").not_obtained.find("no lines"), std::string::npos);
  EXPECT_NE(measured("").not_obtained, "");
}

TEST(SaveBudgetTest, AnEmptyFolderIsNoCheckpoint) {
  const TestDirectory directory;
  EXPECT_FALSE(measure_checkpoint(directory.path(), nobody));
  const auto none = measure_checkpoint(directory.path() + "/none", nobody);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::kInvalid);  // wrong usage, and not our own error
}

}  // namespace
}  // namespace savegate::harness
