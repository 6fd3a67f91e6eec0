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

// A pickle is a program: nothing in it is worth running one for.
TEST(SaveBudgetTest, TheMetadataOfATorchCheckpointIsNotRead) {
  const TestDirectory directory;
  ASSERT_TRUE(write_file(directory.path() + "/.metadata", "\x80\x04"));
  ASSERT_TRUE(write_file(directory.path() + "/__0_0.distcp", "12345"));
  const auto size = measure_checkpoint(directory.path());
  ASSERT_TRUE(size);
  EXPECT_EQ(size->file_bytes, 7U);
  EXPECT_NE(size->not_obtained.find("pickle"), std::string::npos);
  EXPECT_EQ(budget_of(*size, {}).terms[0].source, Source::kNotObtained);
}

TEST(SaveBudgetTest, AnEmptyFolderIsNoCheckpoint) {
  const TestDirectory directory;
  EXPECT_FALSE(measure_checkpoint(directory.path()));
  EXPECT_FALSE(measure_checkpoint(directory.path() + "/none"));
}

}  // namespace
}  // namespace savegate::harness
