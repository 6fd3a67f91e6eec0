#include "reports/result.h"

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

Outcome overall(const std::vector<Verdict>& verdicts) {
  Outcome worst = Outcome::kSkip;
  for (const Verdict& verdict : verdicts) worst = heavier(worst, verdict.outcome);
  return worst;
}

Outcome overall(const RunRecord& run) {
  if (run.scenarios.empty()) return Outcome::kInvalid;
  Outcome worst = Outcome::kSkip;
  for (const ScenarioResult& scenario : run.scenarios) worst = heavier(worst, scenario.outcome);
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
