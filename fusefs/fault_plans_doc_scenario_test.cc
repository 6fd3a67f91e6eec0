// Each example of docs/fault-plans.md and docs/presets.md is mounted and provoked: a comment beside
// it holds a shell script, run in the mount, and what must be seen of it. Then all of the example's
// rules and budgets must have acted.
//
//   <!-- provoke:
//   RANK=1 dd if=/dev/zero of=s/shard-1 bs=8K count=1
//   sees: No space left on device
//   -->
//
// `life: 2` is the life that the mount is of. The script may call `mark KIND NAME` (as RANK) and
// `release [RULE]`. The files have roles as in most checkpoints: shard-*, .metadata, latest, *.tmp.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "faults/plan.h"
#include "fusefs/scenario_support.h"

namespace savegate::fusefs {
namespace {

namespace fs = std::filesystem;

constexpr int kPatience = 60'000;  // milliseconds
constexpr const char* kLayout = R"([layout]
shard = ["**/shard-*"]
marker = ["**/.metadata"]
pointer = ["latest"]
temporary = ["*.tmp"]
)";

struct Example {
  std::string place = {};  // "fault-plans.md:83"
  std::string toml = {};
  std::string script = {};
  std::vector<std::string> sees = {};
  int life = 1;
};

void PrintTo(const Example& example, std::ostream* stream) { *stream << example.place; }

// A line of the comment beside an example.
void read_provocation(const std::string& line, Example& example) {
  constexpr std::string_view kSees = "sees: ";
  constexpr std::string_view kLife = "life: ";
  if (line.starts_with(kSees)) {
    example.sees.push_back(line.substr(kSees.size()));
  } else if (line.starts_with(kLife)) {
    example.life = std::stoi(line.substr(kLife.size()));
  } else {
    example.script += line + "\n";
  }
}

std::vector<Example> examples() {
  std::vector<Example> found;
  for (const char* page : {"fault-plans.md", "presets.md"}) {
    std::ifstream file(std::string(SAVEGATE_SOURCE_DIR) + "/docs/" + page);
    enum class In : std::uint8_t { kText, kExample, kComment } in = In::kText;
    int number = 0;
    for (std::string line; std::getline(file, line);) {
      ++number;
      if (in == In::kText && line == "```toml") {
        in = In::kExample;
        found.push_back({.place = page + (":" + std::to_string(number + 1))});
      } else if (in == In::kText && line == "<!-- provoke:") {
        in = In::kComment;
      } else if (line == "```" || line == "-->") {
        in = In::kText;
      } else if (in == In::kExample) {
        found.back().toml += line + "\n";
      } else if (in == In::kComment) {
        read_provocation(line, found.back());
      }
    }
  }
  return found;
}

// Lists as they stand in a scenario's life are the same plan in other words.
std::string as_plan(std::string toml) {
  for (const auto& [list, table] : {std::pair{"rules ", "rule "}, {"budgets ", "budget "}}) {
    if (const auto at = toml.find(list);
        at != std::string::npos && (at == 0 || toml[at - 1] == '\n')) {
      toml.replace(at, std::string_view(list).size(), table);
    }
  }
  return toml;
}

class DocExampleTest : public testing::TestWithParam<Example> {
 protected:
  void SetUp() override {
    mounted_ = std::make_unique<Mounted>(
        as_plan(GetParam().toml), kLayout, Mounted::Trace::kNo,
        std::vector<std::string>{"--life", std::to_string(GetParam().life)});
    if (!mounted_->ready()) GTEST_SKIP() << mounted_->why_not();
    helpers_ = testing::TempDir() + "doc-example-" + std::to_string(::getpid());
    fs::create_directory(helpers_);
    helper("mark", R"({\"cmd\":\"mark\",\"kind\":\"$1\",\"name\":\"$2\"})");
    helper("release", R"({\"cmd\":\"release\",\"rule\":\"$1\"})");
  }
  void TearDown() override {
    std::error_code ignored;
    fs::remove_all(helpers_, ignored);
  }
  // A command of that name which tells the mount so.
  void helper(const std::string& name, const std::string& command) {
    const std::string path = helpers_ + "/" + name;
    write_all(path, "#!/bin/sh\nexec " SAVEGATE_BIN_DIR "/savegate-fs-caller tell " +
                        mounted_->control_path() + " \"" + command + "\"\n");
    fs::permissions(path, fs::perms::owner_all);
  }
  // What the script prints.
  std::string run(const std::string& script) {
    const std::string out = helpers_ + "/out";
    write_all(helpers_ + "/script", script);
    Child shell = Child::shell(-1, "PATH=" + helpers_ + ":$PATH LC_ALL=C; export PATH LC_ALL; cd " +
                                       mounted_->path() + " && sh " + helpers_ + "/script > " +
                                       out + " 2>&1");
    EXPECT_TRUE(shell.wait_for(kPatience)) << "the script does not end";
    return read_all(out);
  }

  std::unique_ptr<Mounted> mounted_;
  std::string helpers_;
};

TEST_P(DocExampleTest, DoesWhatThePageSays) {
  const Example& example = GetParam();
  ASSERT_FALSE(example.script.empty()) << "nothing provokes the example";
  const std::string output = run(example.script);
  for (const std::string& line : example.sees) {
    EXPECT_NE(output.find(line), std::string::npos) << "not seen: " << line << "\n" << output;
  }
  mounted_->stop();  // what comes undone at the end is told then
  const auto fired = mounted_->fired();
  const auto plan = faults::parse_plan(as_plan(example.toml), example.place);
  ASSERT_TRUE(plan) << plan.error().to_string();
  const auto acted = [&fired](const std::string& name) {
    return std::any_of(fired.begin(), fired.end(),
                       [&name](const auto& record) { return record.rule == name; });
  };
  for (const auto& rule : plan->rules) EXPECT_TRUE(acted(rule.name)) << rule.name << "\n" << output;
  for (const auto& budget : plan->budgets) {
    EXPECT_TRUE(acted(budget.name)) << budget.name << "\n" << output;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Pages, DocExampleTest, testing::ValuesIn(examples()), [](const auto& example) {
      std::string name = example.param.place;
      std::replace_if(
          name.begin(), name.end(),
          [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
      return name;
    });

}  // namespace
}  // namespace savegate::fusefs
