// The resolved scenario in the store: what was run, not how it was generated.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "faults/json_text.h"
#include "harness/scenario.h"
#include "reports/json_fields.h"

namespace savegate::harness {
namespace {

using nlohmann::json;

json to_json(const faults::Amount& amount) {
  if (amount.share) return fmt::format("{}%", *amount.share * 100);
  return amount.bytes;
}

faults::Amount amount_from(const json& value) {
  faults::Amount amount;
  if (value.is_string())
    amount.share = std::stod(value.get<std::string>()) / 100;
  else
    amount.bytes = value.get<std::uint64_t>();
  return amount;
}

json to_json(const Tamper& tamper) {
  json object = {{"kind", tamper_name(tamper.kind)},
                 {"role", faults::role_name(tamper.role)},
                 {"rank", tamper.rank},
                 {"path", tamper.path},
                 {"at", to_json(tamper.at)}};
  if (tamper.other_rank) object["other_rank"] = *tamper.other_rank;
  return object;
}

Tamper tamper_from(const json& object) {
  Tamper tamper;
  tamper.kind =
      tamper_from_name(object.at("kind").get<std::string>()).value_or(Tamper::Kind::kRemove);
  tamper.role =
      faults::role_from_name(object.at("role").get<std::string>()).value_or(faults::Role::kNone);
  tamper.rank = object.at("rank");
  tamper.path = object.at("path");
  tamper.at = amount_from(object.at("at"));
  if (object.contains("other_rank")) tamper.other_rank = object.at("other_rank").get<int>();
  return tamper;
}

json to_json(const Limits& limits) {
  json object = json::object();
  if (limits.open_files) object["open_files"] = *limits.open_files;
  if (limits.file_size) object["file_size"] = *limits.file_size;
  return object;
}

Limits limits_from(const json& object) {
  Limits limits;
  if (object.contains("open_files")) limits.open_files = object["open_files"].get<std::uint64_t>();
  if (object.contains("file_size")) limits.file_size = object["file_size"].get<std::uint64_t>();
  return limits;
}

json to_json(const MemoryLimit& memory) {
  return {{"limit", memory.bytes},
          {"threshold", memory.threshold},
          {"enforced_by", enforcer_name(memory.enforced_by)}};
}

MemoryLimit memory_from(const json& object) {
  return {.bytes = object.at("limit"),
          .threshold = object.at("threshold"),
          .enforced_by = enforcer_from_name(object.at("enforced_by").get<std::string>())
                             .value_or(MemoryLimit::EnforcedBy::kNobody)};
}

json to_json(const Expect& expect) {
  json object = {{"outcome", outcome_name(expect.outcome)},
                 {"within_ns", expect.within_ns},
                 {"resumed", expect.resumed},
                 {"names", expect.names}};
  if (expect.death) object["death"] = death_name(*expect.death);
  return object;
}

Expect expect_from(const json& object) {
  Expect expect;
  expect.outcome =
      outcome_from_name(object.at("outcome").get<std::string>()).value_or(Outcome::kAny);
  expect.within_ns = object.at("within_ns");
  expect.resumed = object.at("resumed").get<std::vector<std::string>>();
  expect.names = object.at("names");
  if (object.contains("death")) expect.death = death_from_name(object["death"].get<std::string>());
  return expect;
}

json to_json(const LifeSpec& life) {
  json tampers = json::array();
  for (const Tamper& tamper : life.tamper) tampers.push_back(to_json(tamper));
  return {{"until", life.until},
          {"plan", faults::print_plan(life.plan)},
          {"env", life.env},
          {"limits", to_json(life.limits)},
          {"memory", to_json(life.memory)},
          {"change", life.change},
          {"tamper", tampers},
          {"hog", {{"at", life.hog.at}, {"headroom", life.hog.headroom}}},
          {"wake_probe", life.wake_probe},
          {"no_progress_ns", life.no_progress_ns},
          {"expect", to_json(life.expect)}};
}

Result<LifeSpec> life_from(const json& object) {
  LifeSpec life;
  life.until = object.at("until");
  SAVEGATE_TRY(life.plan,
               faults::parse_plan(object.at("plan").get<std::string>(), "scenario.json plan"));
  life.env = object.at("env").get<std::map<std::string, std::string>>();
  if (object.contains("limits")) life.limits = limits_from(object["limits"]);
  if (object.contains("memory")) life.memory = memory_from(object["memory"]);
  life.change = object.value("change", "");
  for (const json& tamper : object.at("tamper")) life.tamper.push_back(tamper_from(tamper));
  if (object.contains("hog")) {
    life.hog = {object["hog"].at("at"), object["hog"].at("headroom")};
  }
  life.wake_probe = object.value("wake_probe", false);
  life.no_progress_ns = object.at("no_progress_ns");
  life.expect = expect_from(object.at("expect"));
  return life;
}

}  // namespace

std::string print_scenario(const Scenario& scenario) {
  json lives = json::array();
  for (const LifeSpec& life : scenario.lives) lives.push_back(to_json(life));
  return faults::json_text(json{{"suite", scenario.suite},
                                {"name", scenario.name},
                                {"summary", scenario.summary},
                                {"requirements", scenario.requirements},
                                {"world", scenario.world},
                                {"devices", scenario.devices},
                                {"seed", scenario.seed},
                                {"variables", scenario.variables},
                                {"lives", lives},
                                {"source", scenario.source},
                                {"point", scenario.point}},
                           1);
}

Result<Scenario> scenario_from_json(std::string_view text) {
  const json object = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (object.is_discarded()) return fail(invalid("scenario.json is no JSON"));
  try {
    Scenario scenario;
    scenario.suite = object.at("suite");
    scenario.name = object.at("name");
    scenario.summary = object.at("summary");
    scenario.requirements = object.at("requirements").get<std::vector<std::string>>();
    scenario.world = object.at("world");
    scenario.devices = object.value("devices", std::vector<std::string>{});  // older ones lack it
    scenario.seed = object.at("seed");
    scenario.variables = object.at("variables").get<std::map<std::string, std::string>>();
    for (const json& life : object.at("lives")) {
      SAVEGATE_TRY(LifeSpec spec, life_from(life));
      scenario.lives.push_back(std::move(spec));
    }
    scenario.source = object.at("source");
    scenario.point = object.at("point");
    return scenario;
  } catch (const std::exception& error) {  // of the JSON library, or a number that is none
    return fail(invalid("scenario.json: " + reports::json_problem(error)));
  }
}

}  // namespace savegate::harness
