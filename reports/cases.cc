#include "reports/cases.h"

#include <fmt/format.h>

#include <map>
#include <utility>

namespace savegate::reports {
namespace {

// A class that fails everywhere says the same thing many times; the store has them all.
constexpr std::size_t kExplained = 5;

int weight(const ScenarioResult& result) {
  if (!did_not_pass(result.outcome)) return result.outcome == Outcome::kPass ? 1 : 0;
  if (is_quarantined(result)) return 2;
  return result.outcome == Outcome::kInvalid ? 3 : 4;
}

bool ended_alike(const ScenarioResult& a, const ScenarioResult& b) {
  return a.outcome == b.outcome && is_quarantined(a) == is_quarantined(b);
}

std::string case_name(const ScenarioResult& result) {
  if (result.point.empty()) return result.scenario;
  ScenarioResult bare;  // the group without its suite
  bare.scenario = result.scenario;
  bare.point = result.point;
  return fmt::format("{} [{}]", group_name(bare), point_class(result.point));
}

std::string explain(const ScenarioResult& result) {
  std::string text;
  if (!result.point.empty()) text += result.point + "\n";
  if (const std::string words = standing_words(result); !words.empty()) text += words + "\n";
  for (const Verdict& verdict : result.verdicts) {
    if (verdict.outcome != result.outcome) continue;
    text += fmt::format("{}: {}\n", verdict.requirement, verdict.summary);
    for (const std::string& line : verdict.evidence) text += "  " + line + "\n";
  }
  if (!result.directory.empty()) text += "evidence: " + result.directory + "\n";
  if (!result.repeat.empty()) text += "repeat: " + result.repeat + "\n";
  return text;
}

}  // namespace

Measurement Case::seconds() const {
  double sum = 0;
  for (const ScenarioResult* result : results) {
    if (!result->seconds) return std::nullopt;
    sum += *result->seconds;
  }
  return sum;
}

std::string point_class(std::string_view point) {
  // "rank R OPERATION PATH nth N [MOMENT]", where the path may hold anything.
  const std::size_t rank = point.find(' ');
  const std::size_t operation = rank == std::string_view::npos ? rank : point.find(' ', rank + 1);
  const std::size_t nth = point.rfind(" nth ");
  if (operation == std::string_view::npos || nth == std::string_view::npos || nth < operation)
    return std::string(point);
  std::string text(point.substr(operation + 1, point.find(' ', operation + 1) - operation - 1));
  const std::size_t moment = point.find(' ', nth + 5);
  if (moment != std::string_view::npos) text += point.substr(moment);
  return text;
}

std::string first_sentence(const ScenarioResult& result) {
  for (const Verdict& verdict : result.verdicts)
    if (verdict.outcome == result.outcome) return verdict.requirement + ": " + verdict.summary;
  return std::string(outcome_name(result.outcome));
}

std::vector<Case> cases_of(const RunRecord& run) {
  std::vector<Case> cases;
  std::map<std::pair<std::string, std::string>, std::size_t> sweeps;
  for (const ScenarioResult& result : run.scenarios) {
    const std::string name = case_name(result);
    std::size_t at = cases.size();
    if (!result.point.empty()) at = sweeps.emplace(std::pair(result.suite, name), at).first->second;
    if (at == cases.size()) cases.push_back({.suite = result.suite, .name = name, .results = {}});
    Case& one = cases[at];
    one.results.push_back(&result);
    if (one.worst == nullptr || weight(result) > weight(*one.worst)) {
      one.worst = &result;
      one.like_worst = 0;
    }
    one.like_worst += ended_alike(result, *one.worst) ? 1 : 0;
  }
  return cases;
}

std::string explain(const Case& one) {
  std::string text;
  std::size_t explained = 0;
  for (const ScenarioResult* result : one.results) {
    if (!ended_alike(*result, *one.worst) || ++explained > kExplained) continue;
    if (!text.empty()) text += "\n";
    text += explain(*result);
  }
  if (explained > kExplained)
    text += fmt::format("\n… and {} more points, all in the store\n", explained - kExplained);
  return text;
}

}  // namespace savegate::reports
