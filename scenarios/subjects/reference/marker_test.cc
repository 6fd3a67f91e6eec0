#include "scenarios/subjects/reference/marker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace savegate::reference {
namespace {

const Marker kMarker{.step = 4,
                     .world = 2,
                     .contract = {"c0de", "da7a", "4ec1", 100},
                     .files = {{"shard", 12, "ab"}, {"state", 3, "cd"}}};

TEST(MarkerTest, WhatIsPrintedIsParsed) {
  const auto parsed = parse_marker(print_marker(kMarker), "m");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->step, 4);
  EXPECT_EQ(parsed->contract.items(), kMarker.contract.items());
  ASSERT_NE(parsed->find("state"), nullptr);
  EXPECT_EQ(parsed->find("state")->size, 3U);
  EXPECT_EQ(parsed->find("other"), nullptr);
}

TEST(MarkerTest, DamageIsAnErrorThatNamesTheFile) {
  const std::string text = print_marker(kMarker);
  for (const std::string& damaged :
       {std::string(), text.substr(0, 40), std::string("{}"), std::string(R"({"format":2})")}) {
    const auto parsed = parse_marker(damaged, "step_1/metadata.json");
    ASSERT_FALSE(parsed) << damaged;
    EXPECT_EQ(parsed.error().path, "step_1/metadata.json");
  }
}

// R3: item by item, so that the reader learns what changed.
TEST(ContractTest, EachItemThatDiffersIsNamed) {
  Contract other = kMarker.contract;
  EXPECT_TRUE(check_contract(kMarker.contract, other));
  other.data = "0ther";
  other.total_steps = 7;
  const auto checked = check_contract(kMarker.contract, other);
  ASSERT_FALSE(checked);
  EXPECT_THAT(checked.error().text, testing::HasSubstr("data was da7a, is 0ther"));
  EXPECT_THAT(checked.error().text, testing::HasSubstr("total_steps was 100, is 7"));
  EXPECT_THAT(checked.error().text, testing::Not(testing::HasSubstr("recipe")));
}

TEST(NamesTest, OnlyAStepDirectoryHasAStep) {
  EXPECT_EQ(step_of(step_name(12)), 12);
  for (const char* other : {"step_12", "step_00000012.tmp", "latest", "step_", "step_0000001x"}) {
    EXPECT_EQ(step_of(other), -1) << other;
  }
}

}  // namespace
}  // namespace savegate::reference
