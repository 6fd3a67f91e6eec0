// Every example of docs/fault-plans.md is a plan, and every word of the plans is in it.
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "faults/plan.h"
#include "faults/toml.h"

namespace savegate::faults {
namespace {

std::string document() {
  std::ifstream file(std::string(SAVEGATE_SOURCE_DIR) + "/docs/fault-plans.md");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

struct Example {
  int line = 0;  // of the file, before the first line of the example
  std::string toml;
};

std::vector<Example> examples() {
  std::vector<Example> found;
  std::istringstream in(document());
  std::string line;
  bool inside = false;
  for (int number = 1; std::getline(in, line); ++number) {
    if (line == "```toml") {
      inside = true;
      found.push_back({.line = number, .toml = ""});
    } else if (line == "```") {
      inside = false;
    } else if (inside) {
      found.back().toml += line + "\n";
    }
  }
  return found;
}

// As a plan, or as the inline lists of a scenario's life.
Result<Plan> read(const Example& example) {
  const std::string source = "docs/fault-plans.md+" + std::to_string(example.line);
  if (example.toml.rfind("rules", 0) != 0) return parse_plan(example.toml, source);
  SAVEGATE_TRY(TomlDocument parsed, parse_toml(example.toml, source));
  TomlReader life = parsed.root();
  Plan plan = read_plan(life, "rules", "budgets");
  SAVEGATE_CHECK(life.finish());
  return plan;
}

TEST(FaultPlansDocTest, EveryExampleIsAPlan) {
  const std::vector<Example> all = examples();
  EXPECT_GT(all.size(), 15U);
  for (const Example& example : all) {
    auto plan = read(example);
    ASSERT_TRUE(plan) << plan.error().to_string() << "\n" << example.toml;
    EXPECT_FALSE(plan->rules.empty() && plan->budgets.empty()) << example.toml;
  }
}

TEST(FaultPlansDocTest, EveryKindOfActionHasAnExample) {
  std::set<std::size_t> kinds;
  for (const Example& example : examples()) {
    const Plan plan = read(example).value();
    for (const Rule& rule : plan.rules) kinds.insert(rule.action.index());
  }
  EXPECT_EQ(kinds.size(), std::variant_size_v<Action>);
}

TEST(FaultPlansDocTest, EveryOperationStandsInItsClass) {
  const std::string text = document();
  for (int i = 0; i < kOpCount; ++i) {
    const auto op = static_cast<Op>(i);
    const std::string row = "\n| `" + std::string(op_class_name(op_class(op))) + "` | ";
    const std::size_t begin = text.find(row);
    ASSERT_NE(begin, std::string::npos) << row;
    const std::string line = text.substr(begin + 1, text.find('\n', begin + 1) - begin);
    EXPECT_NE(line.find(" `" + std::string(op_name(op)) + "`"), std::string::npos) << op_name(op);
  }
}

TEST(FaultPlansDocTest, QuotedErrorIsTheRealOne) {
  auto plan = parse_plan("\n\n\n\n[[rule]]\nmatch  = { rnk = 1 }\naction = { errno = 'EIO' }\n",
                         "plan.toml");
  ASSERT_FALSE(plan);
  EXPECT_NE(document().find(plan.error().to_string()), std::string::npos)
      << plan.error().to_string();
}

}  // namespace
}  // namespace savegate::faults
