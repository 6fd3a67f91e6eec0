#include "reports/history.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace savegate::reports {
namespace {

bool contains_all(const std::vector<std::string>& all, const std::vector<std::string>& part) {
  return std::all_of(part.begin(), part.end(), [&](const std::string& id) {
    return std::find(all.begin(), all.end(), id) != all.end();
  });
}

bool failed_alike(const HistoryRow& now, const HistoryRow& past) {
  return past.outcome == now.outcome && contains_all(past.failed, now.failed);
}

bool is_flaky(const HistoryRow& now, const std::vector<HistoryRow>& past) {
  if (now.bound_to.empty()) return false;
  bool passed = now.outcome == Outcome::kPass;
  bool failed = now.outcome == Outcome::kFail;
  for (const HistoryRow& row : past) {
    if (row.bound_to != now.bound_to) continue;
    passed = passed || row.outcome == Outcome::kPass;
    failed = failed || row.outcome == Outcome::kFail;
  }
  return passed && failed;
}

}  // namespace

HistoryRow row_of(const ScenarioResult& result, const RunRecord& run, std::int64_t ended) {
  HistoryRow row;
  row.run = run.id;
  row.ended = ended;
  row.about = {.scenario = lasting_name(result),
               .subject = run.subject,
               .world = result.world,
               .device = run.device};
  row.outcome = result.outcome;
  row.seed = result.seed;
  row.seconds = result.seconds;
  row.bound_to = result.bound_to;
  if (!did_not_pass(result.outcome)) return row;
  for (const Verdict& verdict : result.verdicts) {
    if (verdict.outcome != result.outcome) continue;
    if (row.failed.empty()) row.sentence = verdict.summary;
    row.failed.push_back(verdict.requirement);
  }
  return row;
}

Standing standing_of(const HistoryRow& now, const std::vector<HistoryRow>& past) {
  Standing standing;
  standing.flaky = is_flaky(now, past);
  if (!did_not_pass(now.outcome)) return standing;
  standing.failure = Failure::kNew;
  for (const HistoryRow& row : past) {
    if (row.outcome == Outcome::kSkip) continue;
    if (!failed_alike(now, row)) break;
    standing.failure = Failure::kKnown;
    standing.since = row.run;
  }
  return standing;
}

std::vector<std::size_t> order_by_history(const std::vector<About>& scenarios,
                                          const std::map<About, HistoryRow>& latest) {
  // Failed, never run, run before; then by time.
  const auto rank = [&](std::size_t i) -> std::tuple<int, std::int64_t> {
    const auto found = latest.find(scenarios[i]);
    if (found == latest.end()) return {1, 0};
    return {did_not_pass(found->second.outcome) ? 0 : 2, found->second.ended};
  };
  std::vector<std::size_t> order(scenarios.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return rank(a) < rank(b); });
  return order;
}

}  // namespace savegate::reports
