#include <fmt/format.h>

#include <map>

#include "reports/cases.h"
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

std::string element(std::string_view name, const Case& one) {
  std::string message = first_sentence(*one.worst);
  if (one.results.size() > 1)
    message = fmt::format("{} of {} points: {}", one.like_worst, one.results.size(), message);
  if (const std::string words = standing_words(*one.worst); !words.empty())
    message += " (" + words + ")";
  return fmt::format("      <{} message=\"{}\">{}</{}>\n", name, escape(message),
                     escape(explain(one)), name);
}

std::string skipped(const std::string& reason) {
  return fmt::format("      <skipped message=\"{}\"/>\n", escape(reason));
}

// Where a case fails the run it is one in the CI's account, and only there.
std::string content(const Case& one) {
  const ScenarioResult& worst = *one.worst;
  if (is_quarantined(worst)) return skipped(standing_words(worst) + "; " + first_sentence(worst));
  switch (worst.outcome) {
    case Outcome::kPass:
      return "";
    case Outcome::kFail:
      return element("failure", one);
    case Outcome::kInvalid:
      return element("error", one);
    case Outcome::kSkip:
      return skipped(first_sentence(worst));
  }
  return "";
}

std::string print_case(const Case& one) {
  std::string out = fmt::format("    <testcase classname=\"{}\" name=\"{}\"",
                                escape("savegate." + one.suite), escape(one.name));
  if (const Measurement seconds = one.seconds()) out += fmt::format(" time=\"{:.3f}\"", *seconds);
  const std::string inside = content(one);
  return out + (inside.empty() ? "/>\n" : ">\n" + inside + "    </testcase>\n");
}

}  // namespace

std::string print_junit(const RunRecord& run) {
  const std::vector<Case> cases = cases_of(run);
  std::map<std::string, std::vector<const Case*>> suites;
  for (const Case& one : cases) suites[one.suite].push_back(&one);

  std::string out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  out += fmt::format("<testsuites name=\"{}\">\n", escape(run.id));
  for (const auto& [suite, of_suite] : suites) {
    std::map<Outcome, int> counts;
    for (const Case* one : of_suite)
      ++counts[is_quarantined(*one->worst) ? Outcome::kSkip : one->worst->outcome];
    out += fmt::format(
        "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\">\n",
        escape(suite), of_suite.size(), counts[Outcome::kFail], counts[Outcome::kInvalid],
        counts[Outcome::kSkip]);
    for (const Case* one : of_suite) out += print_case(*one);
    out += "  </testsuite>\n";
  }
  return out + "</testsuites>\n";
}

}  // namespace savegate::reports
