#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "reports/example_run.h"
#include "reports/schema_testing.h"

namespace savegate::reports {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

Schema documented() {
  std::ifstream file(SAVEGATE_SOURCE_DIR "/docs/result-schema.json");
  return Schema(Json::parse(file));
}

TEST(ResultSchemaTest, ARunRecordFitsIt) {
  RunRecord run = example_sweep(2, 1);
  run.seconds.reset();
  EXPECT_EQ(documented().misfit(Json::parse(print_json(run))), "");
}

TEST(ResultSchemaTest, AScenarioResultFitsIt) {
  const auto json = print_json(example_scenario("one", Outcome::kInvalid));
  EXPECT_EQ(documented().misfit(Json::parse(json)), "");
}

TEST(ResultSchemaTest, EveryFieldIsRequiredAndNoOtherIsKnown) {
  const Json whole = Json::parse(print_json(example_sweep(1, 1)));
  for (const auto& [name, value] : whole.items()) {
    Json without = whole;
    without.erase(name);
    EXPECT_NE(documented().misfit(without), "") << name;
  }
  Json more = whole;
  more["surprise"] = 1;
  EXPECT_NE(documented().misfit(more), "");
}

TEST(ResultJsonTest, AMeasurementThatWasNotMadeIsSaidToBeNotObtained) {
  const Json json = Json::parse(print_json(example_scenario("one", Outcome::kPass)));
  EXPECT_EQ(json["lives"][0]["save_seconds"], "not obtained");
  EXPECT_EQ(json["lives"][0]["seconds"], 1.5);
}

TEST(ResultJsonTest, ARunRecordSurvivesPrintingAndParsing) {
  const std::string text = print_json(example_sweep(3, 1));
  const auto read = run_record_from_json(text);
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(print_json(*read), text);
}

TEST(ResultJsonTest, AStandingFitsTheSchemaAndSurvives) {
  ScenarioResult result = example_scenario("one", Outcome::kFail);
  result.bound_to = "0123";
  result.standing =
      Standing{.failure = Failure::kKnown,
               .since = "an earlier run",
               .flaky = true,
               .quarantine = Quarantine{
                   .until = "2026-12-31", .reason = "why", .issue = "https://x", .expired = true}};
  const std::string text = print_json(result);
  EXPECT_EQ(documented().misfit(Json::parse(text)), "");
  const auto read = scenario_result_from_json(text);
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(print_json(*read), text);
}

TEST(ResultJsonTest, AScenarioResultSurvivesPrintingAndParsing) {
  const std::string text = print_json(example_scenario("one", Outcome::kFail));
  const auto read = scenario_result_from_json(text);
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(print_json(*read), text);
}

std::string error_of(const std::string& json) {
  const auto read = scenario_result_from_json(json);
  return read ? "" : read.error().text;
}

TEST(ResultJsonTest, AnErrorNamesTheField) {
  Json json = Json::parse(print_json(example_scenario("one", Outcome::kPass)));
  json["verdicts"][0]["outcome"] = "PERHAPS";
  EXPECT_THAT(error_of(json.dump()), HasSubstr("`outcome`"));
  json = Json::parse(print_json(example_scenario("one", Outcome::kPass)));
  json.erase("seed");
  EXPECT_THAT(error_of(json.dump()), HasSubstr("`seed` is missing"));
  json = Json::parse(print_json(example_scenario("one", Outcome::kPass)));
  json["seconds"] = "soon";
  EXPECT_THAT(error_of(json.dump()), HasSubstr("`seconds`"));
}

TEST(ResultJsonTest, AnotherSchemaIsRefused) {
  Json json = Json::parse(print_json(example_scenario("one", Outcome::kPass)));
  json["schema"] = kResultSchema + 1;
  EXPECT_THAT(error_of(json.dump()), HasSubstr("schema 2"));
  EXPECT_THAT(error_of("{"), HasSubstr("no JSON"));
}

}  // namespace
}  // namespace savegate::reports
