// Every command that README.md and docs/ show is run, block by block, in the order of reading; of a
// CI's configuration, what it runs.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "harness/cli/savegate_program.h"

namespace savegate::cli {
namespace {

namespace fs = std::filesystem;

struct Block {
  std::string place;  // "README.md:31"
  std::string script;
};

// The name of a test's parameter in its output.
void PrintTo(const Block& block, std::ostream* stream) { *stream << block.place; }

// "      - run: COMMAND" of GitHub, or an item of GitLab's `script:`; "" for any other line.
std::string command_of(const std::string& line, bool in_script) {
  const std::size_t item = line.find("- ");
  if (item == std::string::npos) return "";
  if (const std::size_t run = line.find("- run: "); run != std::string::npos)
    return line.substr(run + 7);
  return in_script ? line.substr(item + 2) : "";
}

std::vector<Block> blocks_of(const fs::path& path) {
  std::vector<Block> blocks;
  std::ifstream file(path);
  bool inside = false;
  bool yaml = false;
  bool in_script = false;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (inside && line.starts_with("```")) {
      inside = false;
    } else if (inside) {
      // The two commands of the README build and test everything: this test is part of what they
      // run.
      if (yaml) {
        if (line.ends_with(":") || !line.starts_with(" ")) in_script = line.ends_with("script:");
        line = command_of(line, in_script);
      }
      if (!line.starts_with("./dev ")) blocks.back().script += line + "\n";
    } else if (line == "```sh" || line == "```yaml") {
      inside = true;
      yaml = line == "```yaml";
      blocks.push_back({path.filename().string() + ":" + std::to_string(number + 1), ""});
    }
  }
  return blocks;
}

std::vector<Block> all_blocks() {
  const fs::path source = SAVEGATE_SOURCE_DIR;
  std::vector<fs::path> pages = {source / "README.md"};
  for (const auto& entry : fs::directory_iterator(source / "docs"))
    if (entry.path().extension() == ".md") pages.push_back(entry.path());
  std::sort(pages.begin() + 1, pages.end());
  std::vector<Block> blocks;
  for (const fs::path& page : pages)
    for (Block& block : blocks_of(page))
      if (!block.script.empty()) blocks.push_back(std::move(block));
  return blocks;
}

class DocsTest : public testing::TestWithParam<Block> {};

TEST_P(DocsTest, RunsAsShown) {
  if (const std::string why = SavegateProgram::why_not(); !why.empty()) GTEST_SKIP() << why;
  SavegateProgram savegate;
  // A folder that looks like the checkout, so that the store and what commands write stay out of
  // it.
  const fs::path folder = savegate.folder();
  fs::create_directory(folder / "build");
  fs::create_directory_symlink(savegate.bin(), folder / "build/bin");
  for (const char* name : {"docs", "scenarios"})
    fs::create_directory_symlink(fs::path(SAVEGATE_SOURCE_DIR) / name, folder / name);
  const std::string script = folder.string() + "/block.sh";
  std::ofstream(script) << GetParam().script;
  const Ran ran = savegate.shell("cd " + folder.string() +
                                 " && export SAVEGATE_BUDGET=3s && bash -e -x " + script);
  const std::size_t from = ran.output.size() > 6000 ? ran.output.size() - 6000 : 0;
  EXPECT_EQ(ran.status, 0) << GetParam().place << "\n" << ran.output.substr(from);
  EXPECT_EQ(savegate.processes_left(), "") << GetParam().place;
}

INSTANTIATE_TEST_SUITE_P(Blocks, DocsTest, testing::ValuesIn(all_blocks()), [](const auto& block) {
  std::string name = block.param.place;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return std::isalnum(c) == 0; }, '_');
  return name;
});

}  // namespace
}  // namespace savegate::cli
