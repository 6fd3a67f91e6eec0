#include "reports/result.h"

#include <fmt/format.h>

#include <vector>

namespace savegate::reports {
namespace {

// FAIL before INVALID before PASS; SKIP only where nothing else was said.
int weight(Outcome outcome) {
  switch (outcome) {
    case Outcome::kFail:
      return 3;
    case Outcome::kInvalid:
      return 2;
    case Outcome::kPass:
      return 1;
    case Outcome::kSkip:
      return 0;
  }
  return 0;
}

Outcome heavier(Outcome a, Outcome b) { return weight(a) < weight(b) ? b : a; }

}  // namespace

std::string_view outcome_name(Outcome outcome) {
  switch (outcome) {
    case Outcome::kPass:
      return "PASS";
    case Outcome::kFail:
      return "FAIL";
    case Outcome::kInvalid:
      return "INVALID";
    case Outcome::kSkip:
      return "SKIP";
  }
  return "INVALID";
}

std::optional<Outcome> outcome_from_name(std::string_view name) {
  for (const Outcome outcome :
       {Outcome::kPass, Outcome::kFail, Outcome::kInvalid, Outcome::kSkip}) {
    if (name == outcome_name(outcome)) return outcome;
  }
  return std::nullopt;
}

bool did_not_pass(Outcome outcome) {
  return outcome == Outcome::kFail || outcome == Outcome::kInvalid;
}

bool is_quarantined(const ScenarioResult& result) {
  return result.standing && result.standing->quarantine && !result.standing->quarantine->expired;
}

std::string full_name(const ScenarioResult& result) {
  return result.suite.empty() ? result.scenario : result.suite + "/" + result.scenario;
}

std::string group_name(const ScenarioResult& result) {
  std::string name = full_name(result);
  const std::size_t number = name.find_last_not_of("0123456789");
  const bool numbered =
      number != std::string::npos && number + 1 < name.size() && name[number] == '-';
  if (!result.point.empty() && numbered) name.resize(number);
  return name;
}

std::string lasting_name(const ScenarioResult& result) {
  return result.point.empty() ? full_name(result) : group_name(result) + " [" + result.point + "]";
}

std::string standing_words(const ScenarioResult& result) {
  if (!result.standing) return "";
  const Standing& standing = *result.standing;
  std::vector<std::string> words;
  if (standing.failure == Failure::kNew) words.emplace_back("new");
  if (standing.failure == Failure::kKnown) words.push_back("known since " + standing.since);
  if (standing.flaky) words.emplace_back("flaky");
  if (const auto& quarantine = standing.quarantine) {
    std::string issue = quarantine->issue.empty() ? "" : " (" + quarantine->issue + ")";
    words.push_back(fmt::format(
        "{} {}: {}{}", quarantine->expired ? "its quarantine ended on" : "quarantined until",
        quarantine->until, quarantine->reason, issue));
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

Outcome overall(const std::vector<Verdict>& verdicts) {
  Outcome worst = Outcome::kSkip;
  for (const Verdict& verdict : verdicts) worst = heavier(worst, verdict.outcome);
  return worst;
}

Outcome overall(const RunRecord& run) {
  if (run.scenarios.empty()) return Outcome::kInvalid;
  Outcome worst = Outcome::kSkip;
  for (const ScenarioResult& scenario : run.scenarios)
    if (!is_quarantined(scenario)) worst = heavier(worst, scenario.outcome);
  return worst;
}

int exit_code(const RunRecord& run) {
  switch (overall(run)) {
    case Outcome::kPass:
      return 0;
    case Outcome::kFail:
      return 1;
    case Outcome::kInvalid:
    case Outcome::kSkip:
      return 4;
  }
  return 4;
}

}  // namespace savegate::reports
