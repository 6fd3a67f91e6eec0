#include "harness/cli/reduction.h"

#include <algorithm>
#include <optional>
#include <set>

#include "faults/plan.h"

namespace savegate::cli {
namespace {

using harness::LifeSpec;
using harness::Scenario;
using reports::Outcome;

constexpr std::uint64_t kLeastState = 4096;

int highest(const std::vector<int>& ranks) {
  return ranks.empty() ? 0 : *std::max_element(ranks.begin(), ranks.end());
}

int highest_rank_named(const Scenario& scenario) {
  int rank = 0;
  for (const LifeSpec& life : scenario.lives) {
    for (const faults::Rule& rule : life.plan.rules)
      rank = std::max(rank, highest(rule.match.ranks));
    for (const faults::BudgetSpec& budget : life.plan.budgets)
      rank = std::max(rank, highest(budget.ranks));
    for (const harness::Tamper& tamper : life.tamper)
      rank = std::max({rank, tamper.rank, tamper.other_rank.value_or(0)});
  }
  return rank;
}

bool is_of_a_fault(const harness::Expect& expect) {
  return expect.death || (expect.outcome != harness::Outcome::kComplete &&
                          expect.outcome != harness::Outcome::kAny);
}

// By itself, whatever becomes of the plan.
bool causes_a_fault(const LifeSpec& life) {
  return !life.tamper.empty() || !life.change.empty() || life.limits.any() || life.memory.kills();
}

std::size_t required_items(const LifeSpec& life) {
  const auto count = [](const auto& items) {
    return std::count_if(items.begin(), items.end(),
                         [](const auto& item) { return item.required; });
  };
  return static_cast<std::size_t>(count(life.plan.rules) + count(life.plan.budgets));
}

// In the life itself, or, where it has none, in those before it.
std::size_t causes_of(const Scenario& scenario, std::size_t life) {
  std::size_t causes = required_items(scenario.lives[life]);
  for (std::size_t before = 0; before < life && causes == 0; ++before)
    causes = required_items(scenario.lives[before]);
  return causes;
}

std::set<std::string> with_outcome(const reports::ScenarioResult& result, Outcome outcome) {
  std::set<std::string> ids;
  for (const reports::Verdict& verdict : result.verdicts)
    if (verdict.outcome == outcome) ids.insert(verdict.requirement);
  return ids;
}

}  // namespace

std::vector<PlanItem> plan_items(const Scenario& scenario) {
  std::vector<PlanItem> items;
  for (std::size_t life = 0; life < scenario.lives.size(); ++life) {
    const LifeSpec& spec = scenario.lives[life];
    for (std::size_t i = 0; i < spec.plan.rules.size(); ++i)
      if (spec.plan.rules[i].name != spec.hog.at)
        items.push_back({.life = life, .budget = false, .index = i});
    for (std::size_t i = 0; i < spec.plan.budgets.size(); ++i)
      items.push_back({.life = life, .budget = true, .index = i});
  }
  return items;
}

Scenario with_items(const Scenario& scenario, const std::vector<PlanItem>& items,
                    const std::vector<std::size_t>& kept) {
  Scenario reduced = scenario;
  // From behind, so that the places before stay what they were.
  for (std::size_t i = items.size(); i-- > 0;) {
    if (std::find(kept.begin(), kept.end(), i) != kept.end()) continue;
    faults::Plan& plan = reduced.lives[items[i].life].plan;
    const auto at = static_cast<std::ptrdiff_t>(items[i].index);
    if (items[i].budget)
      plan.budgets.erase(plan.budgets.begin() + at);
    else
      plan.rules.erase(plan.rules.begin() + at);
  }
  return reduced;
}

bool keeps_its_causes(const Scenario& smaller, const Scenario& whole) {
  for (std::size_t i = 0; i < whole.lives.size(); ++i) {
    const LifeSpec& life = whole.lives[i];
    if (!is_of_a_fault(life.expect) || causes_a_fault(life)) continue;
    if (required_items(life) > 0 && required_items(smaller.lives[i]) == 0) return false;
    if (causes_of(whole, i) > 0 && causes_of(smaller, i) == 0) return false;
  }
  return true;
}

std::vector<int> worlds_to_try(const Scenario& scenario, const harness::Subject& subject) {
  std::vector<int> worlds;
  for (int world = highest_rank_named(scenario) + 1; world < scenario.world; ++world)
    if (subject.worlds.empty() ||
        std::find(subject.worlds.begin(), subject.worlds.end(), world) != subject.worlds.end())
      worlds.push_back(world);
  worlds.push_back(scenario.world);
  return worlds;
}

std::vector<std::string> states_to_try(const Scenario& scenario, const harness::Subject& subject) {
  const auto given = scenario.variables.find(kStateVariable);
  const auto own = subject.variables.find(kStateVariable);
  if (given == scenario.variables.end() && own == subject.variables.end()) return {};
  const std::string state = given != scenario.variables.end() ? given->second : own->second;
  const auto bytes = faults::parse_bytes(state);
  if (!bytes) return {};
  std::vector<std::string> states;
  for (std::uint64_t less = kLeastState; less < *bytes; less *= 2)
    states.push_back(faults::print_bytes(less));
  states.push_back(state);
  return states;
}

bool fails_in_the_same_way(const reports::ScenarioResult& before,
                           const reports::ScenarioResult& now) {
  if (now.outcome != Outcome::kFail) return false;
  if (with_outcome(before, Outcome::kFail) != with_outcome(now, Outcome::kFail)) return false;
  const std::set<std::string> were_invalid = with_outcome(before, Outcome::kInvalid);
  const std::set<std::string> are_invalid = with_outcome(now, Outcome::kInvalid);
  return std::includes(were_invalid.begin(), were_invalid.end(), are_invalid.begin(),
                       are_invalid.end());
}

}  // namespace savegate::cli
