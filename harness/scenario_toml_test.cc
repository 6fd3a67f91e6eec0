// A scenario that is written as TOML is read back as it was.
#include <gtest/gtest.h>

#include <filesystem>

#include "harness/scenario.h"

namespace savegate::harness {
namespace {

// All that a scenario says; where it was read is not part of it.
std::string said_by(Scenario scenario) {
  scenario.source.clear();
  return print_scenario(scenario);
}

void expect_read_back(const Scenario& scenario) {
  const std::string toml = print_suite_of(scenario);
  const auto suite = parse_suite(toml, "written.toml");
  ASSERT_TRUE(suite) << suite.error().to_string() << "\n" << toml;
  ASSERT_EQ(suite->scenarios.size(), 1u);
  EXPECT_EQ(said_by(suite->scenarios.front()), said_by(scenario)) << toml;
}

TEST(ScenarioTomlTest, EveryScenarioThatComesWithSavegateIsReadBack) {
  int scenarios = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(SAVEGATE_SOURCE_DIR "/scenarios/suites")) {
    const auto suite = load_suite(entry.path().string());
    ASSERT_TRUE(suite) << suite.error().to_string();
    for (const Scenario& scenario : suite->scenarios) {
      expect_read_back(scenario);
      ++scenarios;
    }
  }
  EXPECT_GE(scenarios, 30);
}

TEST(ScenarioTomlTest, WhatNoneOfThemSaysIsReadBack) {
  const auto suite = parse_suite(R"(
name = "mine"
summary = "A \"quoted\" word and a \\."
[[scenario]]
name = "one"
summary = "Everything at once."
requirements = ["C1", "F7"]
world = 5
devices = ["cpu", "simulated"]
seed = 77
variables = { state = "3MiB", "odd name" = "a = b" }
[[scenario.life]]
until = "save 2"
rules = [{ name = "held", match = { rank = [1, 3], op = ["write", "fsync"] }, action = { hang = true }, required = false }]
budgets = [{ name = "quota", path = "**/shard-*", limit = "1MiB", errno = "EDQUOT" }]
env = { A = "b" }
limits = { open_files = 64, file_size = "1MiB" }
memory = { limit = "1GiB", threshold = 0.5, enforced_by = "guard" }
change = "data"
wake_probe = true
hog = { at = "held", headroom = "16MiB" }
no_progress = "7s"
tamper = [{ kind = "swap", rank = 0, other_rank = 1 }, { kind = "truncate", path = "**/x", at = "25%" }]
expect = { outcome = "refuse-together", within = "3s", resumed = ["save 1", "none"], names = "data", death = "crash" }
)",
                                 "mine.toml");
  ASSERT_TRUE(suite) << suite.error().to_string();
  expect_read_back(suite->scenarios.front());
}

}  // namespace
}  // namespace savegate::harness
