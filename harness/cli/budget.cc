#include "harness/cli/budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "harness/applicable.h"
#include "harness/run/files.h"

namespace savegate::cli {
namespace {

using harness::Scenario;
using reports::About;
using reports::HistoryRow;
using reports::Outcome;

// A sweep failed where one of its points did, and ran when the last of them did.
void add_to_sweep(const HistoryRow& point, std::map<About, HistoryRow>& latest) {
  const std::size_t end = point.about.scenario.find(" [");
  if (end == std::string::npos) return;
  HistoryRow sweep = point;
  sweep.about.scenario.resize(end);
  sweep.seconds.reset();
  const auto [known, is_new] = latest.emplace(sweep.about, sweep);
  if (is_new) return;
  known->second.ended = std::max(known->second.ended, point.ended);
  if (reports::did_not_pass(point.outcome)) known->second.outcome = point.outcome;
}

}  // namespace

Budget::Budget(std::string words, std::uint64_t nanoseconds,
               const std::map<About, HistoryRow>& latest, const std::string& subject,
               const std::string& device)
    : words_(std::move(words)),
      ends_ns_(harness::monotonic_ns() + nanoseconds),
      subject_(subject),
      device_(device) {
  for (const auto& [about, row] : latest) {
    if (about.subject != subject || about.device != device) continue;
    latest_.insert_or_assign(about, row);
    add_to_sweep(row, latest_);
  }
}

std::uint64_t Budget::left_ns() const {
  const std::uint64_t now = harness::monotonic_ns();
  return now < ends_ns_ ? ends_ns_ - now : 0;
}

std::string Budget::reason() const { return "the budget of " + words_ + " was used"; }

About Budget::about(const Scenario& scenario) const {
  reports::ScenarioResult named;
  named.suite = scenario.suite;
  named.scenario = scenario.name;
  named.point = scenario.point;
  return {.scenario = reports::lasting_name(named),
          .subject = subject_,
          .world = scenario.world,
          .device = device_};
}

bool Budget::fits(const Scenario& scenario) const {
  if (!has_time()) return false;
  const auto known = latest_.find(about(scenario));
  return known == latest_.end() || fits(known->second.seconds.value_or(0));
}

void Budget::order(std::vector<Scenario>& scenarios) const {
  std::vector<About> abouts;
  abouts.reserve(scenarios.size());
  for (const Scenario& scenario : scenarios) abouts.push_back(about(scenario));
  std::vector<Scenario> ordered;
  for (const std::size_t i : reports::order_by_history(abouts, latest_))
    ordered.push_back(std::move(scenarios[i]));
  scenarios = std::move(ordered);
}

reports::ScenarioResult Budget::not_run(const Scenario& scenario) const {
  return harness::not_run(scenario, Outcome::kSkip, reason());
}

std::string Budget::account(const reports::RunRecord& run) const {
  std::vector<std::pair<std::string, std::size_t>> left;  // a sweep's points counted
  std::size_t all = 0;
  for (const reports::ScenarioResult& result : run.scenarios) {
    if (result.outcome != Outcome::kSkip || !result.verdicts.front().summary.ends_with(reason()))
      continue;
    ++all;
    const std::string name = reports::group_name(result);
    if (left.empty() || left.back().first != name) left.emplace_back(name, 0);
    if (!result.point.empty()) ++left.back().second;
  }
  std::vector<std::string> names;
  names.reserve(left.size());
  for (const auto& [name, points] : left)
    names.push_back(points == 0 ? name : fmt::format("{} ({} points)", name, points));
  if (names.empty()) return "";
  return fmt::format("not run within the budget of {}, {}: {}\n", words_, all,
                     fmt::join(names, ", "));
}

}  // namespace savegate::cli
