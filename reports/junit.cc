#include <fmt/format.h>

#include <map>

#include "reports/result.h"

namespace savegate::reports {
namespace {

// XML 1.0 has no way to write most control characters; they become '?'. Tab and newline would be
// folded into spaces within an attribute, so that they are written as references.
std::string escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\n':
        out += "&#10;";
        break;
      case '\t':
        out += "&#9;";
        break;
      default:
        out += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
    }
  }
  return out;
}

std::string case_name(const ScenarioResult& result) {
  return result.point.empty() ? result.scenario : result.scenario + " [" + result.point + "]";
}

// Every verdict of that outcome: one line each, its quoted evidence below.
std::string explain(const ScenarioResult& result, Outcome outcome) {
  std::string text;
  for (const Verdict& verdict : result.verdicts) {
    if (verdict.outcome != outcome) continue;
    text += fmt::format("{}: {}\n", verdict.requirement, verdict.summary);
    for (const std::string& line : verdict.evidence) text += "  " + line + "\n";
  }
  if (!result.directory.empty()) text += "evidence: " + result.directory + "\n";
  if (!result.repeat.empty()) text += "repeat: " + result.repeat + "\n";
  return text;
}

std::string first_summary(const ScenarioResult& result, Outcome outcome) {
  for (const Verdict& verdict : result.verdicts) {
    if (verdict.outcome == outcome) return verdict.requirement + ": " + verdict.summary;
  }
  return std::string(outcome_name(outcome));
}

std::string element(std::string_view name, const ScenarioResult& result) {
  return fmt::format("      <{} message=\"{}\">{}</{}>\n", name,
                     escape(first_summary(result, result.outcome)),
                     escape(explain(result, result.outcome)), name);
}

std::string print_case(const ScenarioResult& result) {
  std::string out = fmt::format("    <testcase classname=\"{}\" name=\"{}\"",
                                escape("savegate." + result.suite), escape(case_name(result)));
  if (result.seconds) out += fmt::format(" time=\"{:.3f}\"", *result.seconds);
  switch (result.outcome) {
    case Outcome::kPass:
      return out + "/>\n";
    case Outcome::kFail:
      return out + ">\n" + element("failure", result) + "    </testcase>\n";
    case Outcome::kInvalid:
      return out + ">\n" + element("error", result) + "    </testcase>\n";
    case Outcome::kSkip:
      return out + fmt::format(">\n      <skipped message=\"{}\"/>\n    </testcase>\n",
                               escape(first_summary(result, Outcome::kSkip)));
  }
  return out + "/>\n";
}

}  // namespace

std::string print_junit(const RunRecord& run) {
  std::map<std::string, std::vector<const ScenarioResult*>> suites;
  for (const ScenarioResult& result : run.scenarios) suites[result.suite].push_back(&result);

  std::string out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  out += fmt::format("<testsuites name=\"{}\">\n", escape(run.id));
  for (const auto& [suite, results] : suites) {
    std::map<Outcome, int> counts;
    for (const ScenarioResult* result : results) ++counts[result->outcome];
    out += fmt::format(
        "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\">\n",
        escape(suite), results.size(), counts[Outcome::kFail], counts[Outcome::kInvalid],
        counts[Outcome::kSkip]);
    for (const ScenarioResult* result : results) out += print_case(*result);
    out += "  </testsuite>\n";
  }
  return out + "</testsuites>\n";
}

}  // namespace savegate::reports
