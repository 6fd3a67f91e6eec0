#include "faults/json_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace savegate::faults {
namespace {

namespace fs = std::filesystem;
using testing::IsEmpty;

TEST(JsonTextTest, BytesThatAreNoUtf8AreReplacedInValuesAndNames) {
  EXPECT_EQ(json_text(nlohmann::json("bad\xff/é")), "\"bad\xef\xbf\xbd/é\"");
  EXPECT_EQ(json_text(nlohmann::json{{"a\xff", 1}}, 1), "{\n \"a\xef\xbf\xbd\": 1\n}");
}

bool writes_json_itself(const fs::path& path) {
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return text.find(".dump(") != std::string::npos;
}

TEST(JsonTextTest, NothingElseWritesJson) {
  std::vector<std::string> others;
  std::size_t seen = 0;
  for (const char* top : {"faults", "fusefs", "reports", "harness"})
    for (const auto& entry :
         fs::recursive_directory_iterator(fs::path(SAVEGATE_SOURCE_DIR) / top)) {
      const std::string name = entry.path().filename().string();
      if (!name.ends_with(".cc") && !name.ends_with(".h")) continue;
      if (name.ends_with("_test.cc") || name.ends_with("_testing.h") || name == "json_text.h")
        continue;
      ++seen;
      if (writes_json_itself(entry.path())) others.push_back(entry.path().string());
    }
  EXPECT_GT(seen, 100U);
  EXPECT_THAT(others, IsEmpty());
}

}  // namespace
}  // namespace savegate::faults
