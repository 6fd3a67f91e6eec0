#include "reports/terminal.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace savegate::reports {
namespace {

// A sweep that fails everywhere says the same thing hundreds of times; the store has them all.
constexpr std::size_t kFailuresShownPerSweep = 5;
constexpr std::size_t kEvidenceShown = 8;

struct Sweep {
  std::vector<const ScenarioResult*> points;  // one without a point is no sweep
  const Coverage* coverage = nullptr;
};

std::string word(Outcome outcome, bool colour) {
  std::string padded = fmt::format("{:<8}", outcome_name(outcome));
  if (!colour) return padded;
  switch (outcome) {
    case Outcome::kPass:
      return "\033[32m" + padded + "\033[0m";
    case Outcome::kFail:
      return "\033[1;31m" + padded + "\033[0m";
    case Outcome::kInvalid:
      return "\033[1;33m" + padded + "\033[0m";
    case Outcome::kSkip:
      return "\033[2m" + padded + "\033[0m";
  }
  return padded;
}

std::uint64_t hits(const ScenarioResult& result) {
  std::uint64_t sum = 0;
  for (const FiredCount& fired : result.fired) sum += fired.hits;
  return sum;
}

std::string line(Outcome outcome, const std::string& name, const Measurement& seconds,
                 std::uint64_t fired, bool colour) {
  std::string out = word(outcome, colour) + " " + name;
  out += seconds ? fmt::format("  {:.1f} s", *seconds) : "  time not obtained";
  if (fired > 0) out += fmt::format("  fired {}", fired);
  return out + "\n";
}

std::string render_sweep(const Sweep& sweep, bool colour) {
  Outcome worst = Outcome::kSkip;
  std::uint64_t fired = 0;
  Measurement seconds = 0;
  std::vector<Verdict> outcomes;
  for (const ScenarioResult* point : sweep.points) {
    outcomes.push_back(
        {.requirement = "", .outcome = point->outcome, .summary = "", .evidence = {}});
    fired += hits(*point);
    if (seconds && point->seconds) {
      *seconds += *point->seconds;
    } else {
      seconds.reset();
    }
  }
  worst = overall(outcomes);
  const std::string tried =
      sweep.coverage != nullptr
          ? fmt::format("{}/{} points", sweep.coverage->tried, sweep.coverage->known)
          : fmt::format("{} points tried, number known not obtained", sweep.points.size());
  return line(worst, group_name(*sweep.points.front()) + "  " + tried, seconds, fired, colour);
}

std::string render_verdict(const Verdict& verdict, const TerminalOptions& options) {
  std::string out;
  const auto rule = options.rules.find(verdict.requirement);
  out += fmt::format("  {} {}{}\n", outcome_name(verdict.outcome), verdict.requirement,
                     rule == options.rules.end() ? "" : ": " + rule->second);
  out += "    seen: " + verdict.summary + "\n";
  const std::size_t shown = std::min(verdict.evidence.size(), kEvidenceShown);
  for (std::size_t i = 0; i < shown; ++i)
    if (verdict.evidence[i] != verdict.summary) out += "      " + verdict.evidence[i] + "\n";
  if (shown < verdict.evidence.size()) {
    out +=
        fmt::format("      … and {} more lines in result.json\n", verdict.evidence.size() - shown);
  }
  return out;
}

// Scenarios and sweeps in the order in which they were run.
std::vector<Sweep> in_order(const RunRecord& run) {
  std::vector<Sweep> sweeps;
  std::map<std::string, std::size_t> by_name;
  for (const ScenarioResult& result : run.scenarios) {
    const std::string name = group_name(result);
    const auto known = by_name.find(name);
    if (!result.point.empty() && known != by_name.end()) {
      sweeps[known->second].points.push_back(&result);
      continue;
    }
    Sweep sweep{.points = {&result}, .coverage = nullptr};
    if (!result.point.empty()) {
      by_name.emplace(name, sweeps.size());
      for (const Coverage& coverage : run.coverage) {
        if (coverage.scenario == name || result.suite + "/" + coverage.scenario == name) {
          sweep.coverage = &coverage;
        }
      }
    }
    sweeps.push_back(std::move(sweep));
  }
  return sweeps;
}

// What did not pass, or is flaky, in a line each: a sweep that fails everywhere once for each kind.
std::string standings(const RunRecord& run) {
  std::vector<std::pair<std::string, std::size_t>> lines;
  for (const ScenarioResult& result : run.scenarios) {
    const std::string words = standing_words(result);
    if (words.empty()) continue;
    const std::string text = fmt::format("{}: {}", group_name(result), words);
    const auto same = std::find_if(lines.begin(), lines.end(),
                                   [&](const auto& known) { return known.first == text; });
    if (same == lines.end())
      lines.emplace_back(text, 1);
    else
      ++same->second;
  }
  std::string out;
  for (const auto& [text, times] : lines)
    out += times == 1 ? text + "\n" : fmt::format("{} ({} points)\n", text, times);
  return out;
}

// What scenarios claim to exercise and no verdict of theirs tells, with the reason.
std::string not_judged(const RunRecord& run) {
  std::set<std::string> judged;
  std::map<std::string, std::string> reasons;
  for (const ScenarioResult& result : run.scenarios) {
    const std::set<std::string> claimed(result.requirements.begin(), result.requirements.end());
    for (const Verdict& verdict : result.verdicts) {
      if (!claimed.contains(verdict.requirement)) continue;
      if (verdict.outcome == Outcome::kSkip)
        reasons.emplace(verdict.requirement, verdict.summary);
      else
        judged.insert(verdict.requirement);
    }
  }
  std::string out;
  for (const auto& [requirement, reason] : reasons)
    if (!judged.contains(requirement))
      out += fmt::format("not judged: {}: {}\n", requirement, reason);
  return out;
}

}  // namespace

std::string render_scenario(const ScenarioResult& result, bool colour) {
  std::string name = full_name(result);
  if (!result.point.empty()) name += " [" + result.point + "]";
  return line(result.outcome, name, result.seconds, hits(result), colour);
}

std::string render_failure(const ScenarioResult& result, const TerminalOptions& options) {
  std::string out = render_scenario(result, options.colour);
  if (!result.summary.empty()) out += "  " + result.summary + "\n";
  if (const std::string words = standing_words(result); !words.empty()) out += "  " + words + "\n";
  // Evidence that is not honest (H) is said in full; beside a failure, what could not be judged for
  // want of it is only named.
  std::string invalid;
  for (const Verdict& verdict : result.verdicts) {
    const bool in_full = verdict.outcome == result.outcome || verdict.requirement.starts_with("H");
    if (verdict.outcome == Outcome::kFail || (verdict.outcome == Outcome::kInvalid && in_full))
      out += render_verdict(verdict, options);
    else if (verdict.outcome == Outcome::kInvalid)
      invalid += " " + verdict.requirement;
  }
  if (!invalid.empty()) out += fmt::format("  INVALID{}: not judged, see result.json\n", invalid);
  std::string where = options.store;
  if (!where.empty() && !result.directory.empty()) where += "/";
  where += result.directory;
  if (!where.empty()) out += "  evidence: " + where + "\n";
  if (!result.repeat.empty()) out += "  repeat:   " + result.repeat + "\n";
  return out;
}

std::string render_counts(const RunRecord& run) {
  std::map<Outcome, std::size_t> by_outcome;
  std::size_t quarantined = 0;
  std::size_t new_ones = 0;
  std::size_t flaky = 0;
  for (const ScenarioResult& result : run.scenarios) {
    const bool excused = is_quarantined(result);
    ++(excused ? quarantined : by_outcome[result.outcome]);
    if (!result.standing) continue;
    flaky += result.standing->flaky ? 1 : 0;
    new_ones += !excused && result.standing->failure == Failure::kNew ? 1 : 0;
  }
  std::string out =
      fmt::format("{} run: {} passed", run.scenarios.size(), by_outcome[Outcome::kPass]);
  out += fmt::format(", {} failed, {} invalid", by_outcome[Outcome::kFail],
                     by_outcome[Outcome::kInvalid]);
  if (by_outcome[Outcome::kSkip] > 0)
    out += fmt::format(", {} skipped", by_outcome[Outcome::kSkip]);
  if (quarantined > 0) out += fmt::format(", {} in quarantine", quarantined);
  if (new_ones > 0) out += fmt::format("; {} new", new_ones);
  if (flaky > 0) out += fmt::format("; {} flaky", flaky);
  return out;
}

std::string render_run(const RunRecord& run, const TerminalOptions& options) {
  std::string lines;
  std::string paragraphs;
  for (const Sweep& sweep : in_order(run)) {
    const bool is_sweep = !sweep.points.front()->point.empty();
    if (is_sweep)
      lines += render_sweep(sweep, options.colour);
    else if (options.scenario_lines)
      lines += render_scenario(*sweep.points.front(), options.colour);
    std::size_t failures = 0;
    for (const ScenarioResult* point : sweep.points) {
      if (!did_not_pass(point->outcome)) continue;
      if (++failures <= kFailuresShownPerSweep)
        paragraphs += fmt::format("\n{}", render_failure(*point, options));
    }
    if (failures > kFailuresShownPerSweep) {
      paragraphs +=
          fmt::format("\n… and {} more points of {} that did not pass, all in the store\n",
                      failures - kFailuresShownPerSweep, group_name(*sweep.points.front()));
    }
  }
  std::string out = lines + paragraphs + "\n" + render_counts(run);
  if (run.seconds) out += fmt::format(" in {:.1f} s", *run.seconds);
  if (run.scenarios.empty()) out += " (nothing ran, so nothing was proven)";
  out += "\n" + standings(run) + not_judged(run);
  if (!options.store.empty()) out += "store: " + options.store + "\n";
  return out;
}

}  // namespace savegate::reports
