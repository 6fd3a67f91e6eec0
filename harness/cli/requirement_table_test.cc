#include "harness/cli/requirement_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>

namespace savegate::cli {
namespace {

std::vector<RequirementRow> rows() {
  auto table = requirement_table(Catalog{.bin = "", .data = SAVEGATE_SOURCE_DIR "/scenarios"});
  EXPECT_TRUE(table) << table.error().to_string();
  return table.value_or(std::vector<RequirementRow>());
}

TEST(RequirementTableTest, TheDocumentationShowsIt) {
  std::ifstream file(SAVEGATE_SOURCE_DIR "/docs/requirements.md");
  const std::string page{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  EXPECT_TRUE(page.find("\n\n" + print_requirements_markdown(rows()) + "\n") != std::string::npos)
      << "docs/requirements.md is to have what `savegate list requirements --markdown` prints";
}

TEST(RequirementTableTest, EveryRequirementHasOneRow) {
  std::set<std::string> ids;
  for (const RequirementRow& row : rows()) EXPECT_TRUE(ids.insert(row.id).second) << row.id;
  const std::vector<std::pair<std::string, int>> groups = {{"H", 7}, {"F", 10}, {"C", 12},
                                                           {"R", 7}, {"M", 6},  {"G", 5}};
  for (const auto& [group, count] : groups) {
    for (int number = 1; number <= count; ++number) {
      EXPECT_TRUE(ids.contains(group + std::to_string(number))) << group << number;
    }
  }
}

// An oracle that has caught nothing has shown nothing.
TEST(RequirementTableTest, EveryOracleHasANegativeControl) {
  for (const RequirementRow& row : rows()) {
    if (row.by_command || row.id == "expect") continue;
    EXPECT_FALSE(row.controls.empty()) << row.id;
    EXPECT_FALSE(row.devices.empty()) << row.id;
  }
}

TEST(RequirementTableTest, AnIdIsFoundWithItsOracleScenariosAndControls) {
  const auto table = rows();
  const auto row = std::find_if(table.begin(), table.end(),
                                [](const RequirementRow& each) { return each.id == "C4"; });
  ASSERT_NE(row, table.end());
  EXPECT_EQ(row->judged_by, "uncommitted_first");
  EXPECT_THAT(row->scenarios, testing::Contains("carry-over/step-saved-again"));
  EXPECT_THAT(row->controls, testing::Contains("skip-uncommit"));
  EXPECT_EQ(row->devices, "CPU and GPU");
}

}  // namespace
}  // namespace savegate::cli
