#include "faults/presets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "faults/toml.h"

namespace savegate::faults {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string refusal_of(std::string_view toml) {
  auto plan = parse_plan(toml, "plan.toml");
  return plan ? "no error" : plan.error().to_string();
}

TEST(PresetsTest, EveryPresetIsAPlanWithItsDefaults) {
  for (const Preset& preset : all_presets()) {
    auto plan = preset_plan(preset.name, {});
    ASSERT_TRUE(plan) << plan.error().to_string();
    EXPECT_FALSE(plan->rules.empty() && plan->budgets.empty()) << preset.name;
    EXPECT_EQ(parse_plan(print_plan(*plan), "printed").value(), *plan) << preset.name;
  }
}

TEST(PresetsTest, EveryParameterIsUsed) {
  for (const Preset& preset : all_presets()) {
    for (const PresetParameter& parameter : preset.parameters) {
      EXPECT_THAT(preset.toml, HasSubstr("${" + std::string(parameter.name) + "}")) << preset.name;
    }
  }
}

TEST(PresetsTest, APlanTakesAPresetByItsName) {
  const Plan plan = parse_plan("preset = 'no-direct-io'\n", "plan.toml").value();
  ASSERT_EQ(plan.rules.size(), 1U);
  EXPECT_EQ(to_string(plan.rules[0].action), "missing direct-io");
}

TEST(PresetsTest, AValueReplacesItsDefault) {
  const Plan plan =
      parse_plan("preset = { name = 'full-disk', limit = '64MiB' }\n", "plan.toml").value();
  EXPECT_EQ(plan.budgets.at(0), preset_plan("full-disk", {{"limit", "64MiB"}})->budgets.at(0));
  EXPECT_NE(plan.budgets.at(0), preset_plan("full-disk", {})->budgets.at(0));
}

TEST(PresetsTest, PathAndRankNarrowAllRules) {
  const Plan plan = preset_from_words("nfs:path=step_*/**,rank=3").value();
  ASSERT_GT(plan.rules.size(), 1U);
  for (const Rule& rule : plan.rules) {
    EXPECT_EQ(rule.match.path, "step_*/**");
    EXPECT_THAT(rule.match.ranks, ElementsAre(3));
  }
  EXPECT_EQ(preset_from_words("quota:path=a/**")->budgets.at(0).path, "a/**");
  EXPECT_FALSE(preset_from_words("quota:rank=1"));
  EXPECT_FALSE(preset_from_words("nfs:rank=one"));
}

TEST(PresetsTest, RulesOfAPlanStandBeforeThoseOfItsPreset) {
  const Plan plan = parse_plan(
                        "preset = 'failing-disk'\n"
                        "[[rule]]\naction = { delay = '1ms' }\n",
                        "plan.toml")
                        .value();
  ASSERT_EQ(plan.rules.size(), 2U);
  EXPECT_EQ(plan.rules[1].name, "failing-disk");
  EXPECT_THAT(refusal_of("preset = 'failing-disk'\n"
                         "[[rule]]\nname = 'failing-disk'\naction = { delay = '1ms' }\n"),
              HasSubstr("is taken"));
}

TEST(PresetsTest, UnknownNamesAndValuesAreToldWhereTheyStand) {
  EXPECT_EQ(refusal_of("\npreset = 'full-dsk'\n"),
            "plan.toml:2:10: there is no preset `full-dsk`; did you mean `full-disk`?");
  EXPECT_THAT(refusal_of("preset = { name = 'full-disk', limt = 1 }\n"),
              HasSubstr("has no parameter `limt`; did you mean `limit`?"));
  EXPECT_THAT(refusal_of("preset = { name = 'full-disk', limit = 'much' }\n"),
              HasSubstr("`limit`: "));
  EXPECT_THAT(refusal_of("preset = { name = 'full-disk', limit = '1\"' }\n"), HasSubstr("quotes"));
  EXPECT_FALSE(preset_from_words("full-disk:limit"));
}

TEST(PresetsTest, APresetStandsInAScenariosLife) {
  auto parsed = parse_toml("preset = 'read-only-remount'\nrules = []\n", "suite.toml");
  ASSERT_TRUE(parsed);
  TomlReader life = parsed->root();
  const Plan plan = read_plan(life, "rules", "budgets");
  EXPECT_TRUE(life.finish());
  EXPECT_EQ(plan.rules.at(0).name, "read-only-remount");
}

// The page has each preset as it is.
TEST(PresetsTest, ThePageShowsEveryPresetAsItIs) {
  std::ifstream file(std::string(SAVEGATE_SOURCE_DIR) + "/docs/presets.md");
  std::stringstream text;
  text << file.rdbuf();
  for (const Preset& preset : all_presets()) {
    EXPECT_THAT(text.str(), HasSubstr("\n## " + std::string(preset.name) + "\n"));
    EXPECT_THAT(text.str(), HasSubstr("```toml\n" + preset_toml(preset.name, {}).value() + "```\n"))
        << preset.name;
    for (const PresetParameter& parameter : preset.parameters) {
      EXPECT_THAT(text.str(), HasSubstr("| `" + std::string(parameter.name) + "` | `" +
                                        std::string(parameter.otherwise) + "` | "))
          << preset.name;
    }
  }
}

}  // namespace
}  // namespace savegate::faults
