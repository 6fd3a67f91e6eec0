// The arrows between the folders: who may include whom. A wrong include fails with file and line.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace savegate {
namespace {

namespace fs = std::filesystem;

struct Folder {
  std::string_view name;                  // of those that fit, the first counts
  std::vector<std::string_view> may_use;  // folders, or single headers
};

const std::vector<Folder>& folders() {
  static const std::vector<Folder> kFolders = {
      {"faults/", {"faults/"}},
      {"fusefs/", {"fusefs/", "faults/"}},
      {"reports/", {"reports/", "faults/"}},
      {"gpu/", {"gpu/", "faults/status.h"}},
      {"harness/worker/", {"harness/", "faults/", "fusefs/", "reports/", "gpu/"}},
      {"harness/", {"harness/", "faults/", "fusefs/", "reports/"}},
      {"scenarios/", {"scenarios/", "harness/worker/", "gpu/", "faults/"}},
  };
  return kFolders;
}

bool begins_with(std::string_view text, std::string_view beginning) {
  return text.substr(0, beginning.size()) == beginning;
}

const Folder* folder_of(std::string_view path) {
  for (const Folder& folder : folders()) {
    if (begins_with(path, folder.name)) return &folder;
  }
  return nullptr;
}

bool allowed(std::string_view from, std::string_view included) {
  const Folder* folder = folder_of(from);
  if (folder == nullptr || folder_of(included) == nullptr) return true;  // not ours
  return std::any_of(folder->may_use.begin(), folder->may_use.end(),
                     [&](std::string_view used) { return begins_with(included, used); });
}

// The header that a line includes from our own tree, "" if none.
std::string included_by(const std::string& line) {
  const std::size_t hash = line.find_first_not_of(" \t");
  if (hash == std::string::npos || line[hash] != '#') return "";
  const std::size_t word = line.find("include", hash);
  const std::size_t open = line.find('"', hash);
  if (word == std::string::npos || open == std::string::npos || word > open) return "";
  const std::size_t close = line.find('"', open + 1);
  return close == std::string::npos ? "" : line.substr(open + 1, close - open - 1);
}

TEST(IncludeDirectionsTest, EveryIncludeFollowsAnArrow) {
  const fs::path root = SAVEGATE_SOURCE_DIR;
  constexpr std::array<std::string_view, 5> kSources = {".h", ".cc", ".cu", ".cuh", ".inc"};
  std::size_t seen = 0;
  for (const char* top : {"faults", "fusefs", "reports", "gpu", "harness", "scenarios"}) {
    if (!fs::exists(root / top)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / top)) {
      const std::string extension = entry.path().extension().string();
      if (std::find(kSources.begin(), kSources.end(), extension) == kSources.end()) continue;
      const std::string path = fs::relative(entry.path(), root).string();
      std::ifstream file(entry.path());
      std::string line;
      for (int number = 1; std::getline(file, line); ++number) {
        const std::string included = included_by(line);
        if (included.empty()) continue;
        ++seen;
        EXPECT_TRUE(allowed(path, included)) << path << ":" << number << " includes " << included;
      }
    }
  }
  EXPECT_GT(seen, 20U) << "no includes found below " << root;
}

TEST(IncludeDirectionsTest, ArrowsPointOneWay) {
  EXPECT_TRUE(allowed("fusefs/flow.cc", "faults/plan.h"));
  EXPECT_FALSE(allowed("faults/plan.cc", "fusefs/control.h"));
  EXPECT_FALSE(allowed("fusefs/flow.cc", "reports/result.h"));
  EXPECT_FALSE(allowed("reports/result.cc", "harness/evidence.h"));
  EXPECT_TRUE(allowed("gpu/tensor.cc", "faults/status.h"));
  EXPECT_FALSE(allowed("gpu/tensor.cc", "faults/plan.h"));
  EXPECT_TRUE(allowed("harness/worker/worker.cc", "gpu/tensor.h"));
  EXPECT_FALSE(allowed("harness/run/run.cc", "gpu/tensor.h"));
  EXPECT_TRUE(allowed("scenarios/subjects/x.cc", "harness/worker/worker.h"));
  EXPECT_FALSE(allowed("scenarios/subjects/x.cc", "harness/evidence.h"));
  EXPECT_TRUE(allowed("harness/run/run.cc", "fmt/format.h"));
}

TEST(IncludeDirectionsTest, IncludesAreFoundHoweverTheyAreSpaced) {
  EXPECT_EQ(included_by("#include \"faults/plan.h\""), "faults/plan.h");
  EXPECT_EQ(included_by("  #  include  \"faults/plan.h\"  // why"), "faults/plan.h");
  EXPECT_EQ(included_by("#include <vector>"), "");
  EXPECT_EQ(included_by("// #include \"x/y.h\""), "");
}

}  // namespace
}  // namespace savegate
