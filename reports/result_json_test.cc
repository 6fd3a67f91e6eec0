#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "reports/example_run.h"

namespace savegate::reports {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

// As much of JSON Schema as docs/result-schema.json uses. The empty string: the value fits.
class Schema {
 public:
  explicit Schema(Json document) : document_(std::move(document)) {}

  std::string misfit(const Json& value) const { return misfit(document_, value, ""); }

 private:
  std::string misfit(const Json& schema, const Json& value, const std::string& where) const {
    if (schema.contains("$ref")) {
      const std::string path = schema["$ref"].get<std::string>().substr(1);
      return misfit(document_.at(Json::json_pointer(path)), value, where);
    }
    if (schema.contains("const") && schema["const"] != value) return where + ": another constant";
    if (schema.contains("enum") &&
        std::find(schema["enum"].begin(), schema["enum"].end(), value) == schema["enum"].end()) {
      return where + ": none of the words";
    }
    if (schema.contains("type") && !has_type(value, schema["type"])) return where + ": type";
    for (const Json& all : schema.value("allOf", Json::array())) {
      if (auto bad = misfit(all, value, where); !bad.empty()) return bad;
    }
    for (const char* some : {"anyOf", "oneOf"}) {
      if (!schema.contains(some)) continue;
      std::string bad;
      bool fits = false;
      for (const Json& choice : schema[some]) {
        const std::string why = misfit(choice, value, where);
        fits = fits || why.empty();
        bad += why + "; ";
      }
      if (!fits) return bad;
    }
    for (const Json& name : schema.value("required", Json::array())) {
      if (!value.contains(name.get<std::string>())) {
        return where + ": without " + name.get<std::string>();
      }
    }
    if (value.is_object()) return misfit_of_members(schema, value, where);
    if (value.is_array() && schema.contains("items")) {
      for (const Json& element : value) {
        if (auto bad = misfit(schema["items"], element, where + "[]"); !bad.empty()) return bad;
      }
    }
    return "";
  }

  std::string misfit_of_members(const Json& schema, const Json& value,
                                const std::string& where) const {
    const Json properties = schema.value("properties", Json::object());
    for (const auto& [name, member] : value.items()) {
      std::string at = where;
      at.append("/").append(name);
      if (properties.contains(name)) {
        if (auto bad = misfit(properties[name], member, at); !bad.empty()) return bad;
      } else if (schema.contains("additionalProperties")) {
        const Json& others = schema["additionalProperties"];
        if (others == false) return at + ": not in the schema";
        if (auto bad = misfit(others, member, at); !bad.empty()) return bad;
      }
    }
    return "";
  }

  static bool has_type(const Json& value, const std::string& type) {
    return type == "object"    ? value.is_object()
           : type == "array"   ? value.is_array()
           : type == "string"  ? value.is_string()
           : type == "integer" ? value.is_number_integer()
           : type == "boolean" ? value.is_boolean()
                               : value.is_number();
  }

  Json document_;
};

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
