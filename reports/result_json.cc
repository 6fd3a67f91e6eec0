#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "faults/json_text.h"
#include "reports/json_fields.h"
#include "reports/result.h"

namespace savegate::reports {
namespace {

using Json = nlohmann::ordered_json;
using Input = nlohmann::json;

constexpr std::string_view kNotObtained = "not obtained";

Json to_json(const Measurement& measurement) {
  if (measurement) return *measurement;
  return kNotObtained;
}

Json to_json(const Verdict& verdict) {
  return {{"requirement", verdict.requirement},
          {"outcome", outcome_name(verdict.outcome)},
          {"summary", verdict.summary},
          {"evidence", verdict.evidence}};
}

Json to_json(const FiredCount& fired) {
  return {{"life", fired.life},
          {"rule", fired.rule},
          {"required", fired.required},
          {"hits", fired.hits}};
}

Json to_json(const LifeSummary& life) {
  return {{"number", life.number},
          {"until", life.until},
          {"outcome", life.outcome},
          {"seconds", to_json(life.seconds)},
          {"save_seconds", to_json(life.save_seconds)},
          {"restore_seconds", to_json(life.restore_seconds)},
          {"bytes_saved", to_json(life.bytes_saved)},
          {"files", to_json(life.files)}};
}

Json to_json(const Quarantine& quarantine) {
  return {{"until", quarantine.until},
          {"reason", quarantine.reason},
          {"issue", quarantine.issue},
          {"expired", quarantine.expired}};
}

constexpr std::string_view failure_name(Failure failure) {
  return failure == Failure::kNew ? "new" : failure == Failure::kKnown ? "known" : "none";
}

Json to_json(const Standing& standing) {
  Json json = {{"failure", failure_name(standing.failure)},
               {"since", standing.since},
               {"flaky", standing.flaky}};
  if (standing.quarantine) json["quarantine"] = to_json(*standing.quarantine);
  return json;
}

Json to_json(const ScenarioResult& result);

Json to_json(const Coverage& coverage) {
  return {{"scenario", coverage.scenario}, {"known", coverage.known}, {"tried", coverage.tried}};
}

template <class T>
Json list_to_json(const std::vector<T>& values) {
  Json list = Json::array();
  for (const T& value : values) list.push_back(to_json(value));
  return list;
}

Json to_json(const ScenarioResult& result) {
  Json json = {{"suite", result.suite},
               {"scenario", result.scenario},
               {"point", result.point},
               {"summary", result.summary},
               {"outcome", outcome_name(result.outcome)},
               {"requirements", result.requirements},
               {"verdicts", list_to_json(result.verdicts)},
               {"fired", list_to_json(result.fired)},
               {"lives", list_to_json(result.lives)},
               {"seed", result.seed},
               {"world", result.world},
               {"directory", result.directory},
               {"repeat", result.repeat},
               {"seconds", to_json(result.seconds)},
               {"bound_to", result.bound_to}};
  if (result.standing) json["standing"] = to_json(*result.standing);
  return json;
}

std::string print(const Json& body) {
  Json document = {{"schema", kResultSchema}};
  document.update(body);
  return faults::json_text(document, 2) + "\n";
}

Measurement measurement(JsonFields& fields, std::string_view key) {
  const Input* value = fields.find(key, Need::kRequired);
  if (value == nullptr) return std::nullopt;
  if (value->is_number()) return value->get<double>();
  if (!value->is_string() || value->get<std::string>() != kNotObtained) {
    fields.wrong(key, "number, nor \"not obtained\"");
  }
  return std::nullopt;
}

Outcome outcome(JsonFields& fields) {
  const auto read = outcome_from_name(fields.string("outcome", Need::kRequired));
  if (!read) fields.wrong("outcome", "outcome");
  return read.value_or(Outcome::kInvalid);
}

std::vector<std::string> strings(JsonFields& fields, std::string_view key) {
  std::vector<std::string> values;
  for (const Input& value : fields.array(key, Need::kRequired)) {
    if (!value.is_string()) {
      fields.wrong(key, "array of strings");
      return {};
    }
    values.push_back(value.get<std::string>());
  }
  return values;
}

// Every element of the array read by `read`; the first error stays in `fields`.
template <class T>
std::vector<T> list(JsonFields& fields, std::string_view key, Result<T> (*read)(const Input&)) {
  std::vector<T> values;
  for (const Input& element : fields.array(key, Need::kRequired)) {
    auto value = read(element);
    if (!value) {
      fields.set_error(value.error());
      return {};
    }
    values.push_back(std::move(*value));
  }
  return values;
}

Result<Verdict> read_verdict(const Input& json) {
  JsonFields fields(json, "verdict");
  Verdict verdict;
  verdict.requirement = fields.string("requirement", Need::kRequired);
  verdict.outcome = outcome(fields);
  verdict.summary = fields.string("summary", Need::kRequired);
  verdict.evidence = strings(fields, "evidence");
  SAVEGATE_CHECK(fields.finish());
  return verdict;
}

Result<FiredCount> read_fired(const Input& json) {
  JsonFields fields(json, "fired");
  FiredCount fired;
  fired.life = fields.small_integer("life", Need::kRequired).value_or(0);
  fired.rule = fields.string("rule", Need::kRequired);
  fired.required = fields.boolean("required", Need::kRequired).value_or(true);
  fired.hits = fields.count("hits", Need::kRequired).value_or(0);
  SAVEGATE_CHECK(fields.finish());
  return fired;
}

Result<LifeSummary> read_life(const Input& json) {
  JsonFields fields(json, "life");
  LifeSummary life;
  life.number = fields.small_integer("number", Need::kRequired).value_or(0);
  life.until = fields.string("until", Need::kRequired);
  life.outcome = fields.string("outcome", Need::kRequired);
  life.seconds = measurement(fields, "seconds");
  life.save_seconds = measurement(fields, "save_seconds");
  life.restore_seconds = measurement(fields, "restore_seconds");
  life.bytes_saved = measurement(fields, "bytes_saved");
  life.files = measurement(fields, "files");
  SAVEGATE_CHECK(fields.finish());
  return life;
}

Result<Coverage> read_coverage(const Input& json) {
  JsonFields fields(json, "coverage");
  Coverage coverage;
  coverage.scenario = fields.string("scenario", Need::kRequired);
  coverage.known = fields.count("known", Need::kRequired).value_or(0);
  coverage.tried = fields.count("tried", Need::kRequired).value_or(0);
  SAVEGATE_CHECK(fields.finish());
  return coverage;
}

Result<Quarantine> read_quarantine(const Input& json) {
  JsonFields fields(json, "quarantine");
  Quarantine quarantine;
  quarantine.until = fields.string("until", Need::kRequired);
  quarantine.reason = fields.string("reason", Need::kRequired);
  quarantine.issue = fields.string("issue", Need::kRequired);
  quarantine.expired = fields.boolean("expired", Need::kRequired).value_or(false);
  SAVEGATE_CHECK(fields.finish());
  return quarantine;
}

Result<Standing> read_standing(const Input& json) {
  JsonFields fields(json, "standing");
  Standing standing;
  const std::string failure = fields.string("failure", Need::kRequired);
  for (const Failure candidate : {Failure::kNew, Failure::kKnown})
    if (failure == failure_name(candidate)) standing.failure = candidate;
  if (failure != failure_name(standing.failure)) fields.wrong("failure", "word of the schema");
  standing.since = fields.string("since", Need::kRequired);
  standing.flaky = fields.boolean("flaky", Need::kRequired).value_or(false);
  if (const Input* quarantine = fields.find("quarantine", Need::kOptional)) {
    SAVEGATE_TRY(standing.quarantine, read_quarantine(*quarantine));
  }
  SAVEGATE_CHECK(fields.finish());
  return standing;
}

Result<ScenarioResult> read_scenario(const Input& json) {
  JsonFields fields(json, "scenario result");
  ScenarioResult result;
  result.suite = fields.string("suite", Need::kRequired);
  result.scenario = fields.string("scenario", Need::kRequired);
  result.point = fields.string("point", Need::kRequired);
  result.summary = fields.string("summary", Need::kRequired);
  result.outcome = outcome(fields);
  result.requirements = strings(fields, "requirements");
  result.verdicts = list(fields, "verdicts", &read_verdict);
  result.fired = list(fields, "fired", &read_fired);
  result.lives = list(fields, "lives", &read_life);
  result.seed = fields.count("seed", Need::kRequired).value_or(0);
  result.world = fields.small_integer("world", Need::kRequired).value_or(0);
  result.directory = fields.string("directory", Need::kRequired);
  result.repeat = fields.string("repeat", Need::kRequired);
  result.seconds = measurement(fields, "seconds");
  result.bound_to = fields.string("bound_to", Need::kOptional);
  if (const Input* standing = fields.find("standing", Need::kOptional)) {
    SAVEGATE_TRY(result.standing, read_standing(*standing));
  }
  SAVEGATE_CHECK(fields.finish());
  return result;
}

Result<Input> read_document(std::string_view text) {
  SAVEGATE_TRY(Input document, parse_json(text, "result"));
  JsonFields fields(document, "result");
  const auto schema = fields.small_integer("schema", Need::kRequired);
  SAVEGATE_CHECK(fields.finish());
  if (*schema != kResultSchema) {
    return fail(invalid(
        fmt::format("result: schema {}, but this program reads {}", *schema, kResultSchema)));
  }
  return document;
}

}  // namespace

std::string print_json(const ScenarioResult& result) { return print(to_json(result)); }

std::string print_json(const RunRecord& run) {
  return print({{"id", run.id},
                {"command", run.command},
                {"subject", run.subject},
                {"device", run.device},
                {"outcome", outcome_name(overall(run))},
                {"provenance", run.provenance},
                {"scenarios", list_to_json(run.scenarios)},
                {"coverage", list_to_json(run.coverage)},
                {"supersedes", run.supersedes},
                {"seconds", to_json(run.seconds)}});
}

Result<ScenarioResult> scenario_result_from_json(std::string_view json) {
  SAVEGATE_TRY(const Input document, read_document(json));
  return read_scenario(document);
}

Result<RunRecord> run_record_from_json(std::string_view json) {
  SAVEGATE_TRY(const Input document, read_document(json));
  JsonFields fields(document, "run record");
  RunRecord run;
  run.id = fields.string("id", Need::kRequired);
  run.command = fields.string("command", Need::kRequired);
  run.subject = fields.string("subject", Need::kOptional);
  run.device = fields.string("device", Need::kOptional);
  for (const auto& [name, value] : fields.object("provenance", Need::kRequired).items()) {
    if (!value.is_string()) {
      fields.wrong("provenance", "map of strings");
      break;
    }
    run.provenance.emplace(name, value.get<std::string>());
  }
  run.scenarios = list(fields, "scenarios", &read_scenario);
  run.coverage = list(fields, "coverage", &read_coverage);
  run.supersedes = fields.string("supersedes", Need::kRequired);
  run.seconds = measurement(fields, "seconds");
  SAVEGATE_CHECK(fields.finish());
  return run;
}

}  // namespace savegate::reports
