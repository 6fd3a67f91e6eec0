#include "harness/cli/requirement_ids.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace savegate::cli {
namespace {

using testing::HasSubstr;

std::string ids_error(const std::vector<std::string>& ids) {
  const auto checked = check_requirement_ids(ids, "mine.toml:4:1");
  return checked ? "" : checked.error().to_string();
}

TEST(RequirementIdsTest, WhatAnOracleJudgesIsAccepted) {
  EXPECT_EQ(ids_error({"C1", "F10", "expect"}), "");
}

TEST(RequirementIdsTest, AnUnknownOneIsNamedWithItsPlaceAndTheNearest) {
  EXPECT_THAT(ids_error({"C1", "expct"}), HasSubstr("mine.toml:4:1"));
  EXPECT_THAT(ids_error({"C1", "expct"}), HasSubstr("did you mean `expect`?"));
}

// `savegate signoff` judges C11; in a scenario it would be claimed and never shown.
TEST(RequirementIdsTest, OneThatNoScenarioIsJudgedByIsRefused) {
  EXPECT_THAT(ids_error({"C11"}), HasSubstr("no scenario is judged by `C11`"));
}

TEST(RequirementIdsTest, OneThatIsThereTwiceIsRefused) {
  EXPECT_THAT(ids_error({"C1", "C1"}), HasSubstr("`C1` is there twice"));
}

}  // namespace
}  // namespace savegate::cli
