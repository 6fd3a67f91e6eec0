#include "reports/github.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "reports/cases.h"
#include "reports/terminal.h"

namespace savegate::reports {
namespace {

// Of a workflow command's message; in a property `:` and `,` end it too.
std::string escape(std::string_view text, bool property) {
  std::string out;
  for (const char c : text) {
    if (c == '%' || c == '\r' || c == '\n' || (property && (c == ':' || c == ',')))
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    else
      out += c;
  }
  return out;
}

// Of a cell of a Markdown table.
std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '\n' || c == '\r')
      out += ' ';
    else if (std::string_view("|`*_\\[]").find(c) != std::string_view::npos)
      out += std::string("\\") + c;
    else
      out += c;
  }
  return out;
}

std::string name_of(const Case& one) { return one.suite + "/" + one.name; }

bool fails(const Case& one) {
  return did_not_pass(one.worst->outcome) && !is_quarantined(*one.worst);
}

bool is_flaky(const Case& one) {
  return std::any_of(one.results.begin(), one.results.end(), [](const ScenarioResult* result) {
    return result->standing && result->standing->flaky;
  });
}

// New failures, others, then what is excused or flaky; what passed otherwise is left out.
std::vector<Case> worth_telling(const RunRecord& run) {
  std::vector<Case> cases = cases_of(run);
  std::erase_if(
      cases, [](const Case& one) { return !did_not_pass(one.worst->outcome) && !is_flaky(one); });
  const auto rank = [](const Case& one) {
    if (!fails(one)) return 2;
    const auto& standing = one.worst->standing;
    return standing && standing->failure == Failure::kKnown ? 1 : 0;
  };
  std::stable_sort(cases.begin(), cases.end(),
                   [&](const Case& a, const Case& b) { return rank(a) < rank(b); });
  return cases;
}

std::string points(const Case& one) {
  return one.results.size() == 1
             ? ""
             : fmt::format("{} of {} points: ", one.like_worst, one.results.size());
}

// "FAIL, new", "PASS, flaky"
std::string verdict_words(const Case& one) {
  std::string words(outcome_name(one.worst->outcome));
  const ScenarioResult* telling = one.worst;
  if (!did_not_pass(telling->outcome))
    for (const ScenarioResult* result : one.results)
      if (result->standing && result->standing->flaky) telling = result;
  const std::string standing = standing_words(*telling);
  return standing.empty() ? words : words + ", " + standing;
}

std::string seen(const Case& one) {
  return did_not_pass(one.worst->outcome) ? points(one) + first_sentence(*one.worst)
                                          : "it has failed with the same code";
}

}  // namespace

std::string github_annotations(const RunRecord& run) {
  std::string out;
  for (const Case& one : worth_telling(run)) {
    std::string message = seen(one);
    if (!one.worst->repeat.empty()) message += "\nrepeat: " + one.worst->repeat;
    out += fmt::format("::{} title={}::{}\n", fails(one) ? "error" : "warning",
                       escape(name_of(one) + ": " + verdict_words(one), /*property=*/true),
                       escape(message, /*property=*/false));
  }
  return out;
}

std::string github_summary(const RunRecord& run) {
  std::string out =
      fmt::format("### savegate: {}\n\n{}\n", outcome_name(overall(run)), cell(render_counts(run)));
  const std::vector<Case> cases = worth_telling(run);
  if (cases.empty()) return out + "\n";
  out += "\n| scenario | verdict | seen |\n|---|---|---|\n";
  for (const Case& one : cases)
    out += fmt::format("| {} | {} | {} |\n", cell(name_of(one)), cell(verdict_words(one)),
                       cell(seen(one)));
  return out + "\n";
}

}  // namespace savegate::reports
