// What can be taken away from a scenario: rules and budgets, ranks, bytes of state.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "harness/scenario.h"
#include "harness/subject.h"
#include "reports/result.h"

namespace savegate::cli {

inline constexpr const char* kStateVariable = "state";  // of a subject: its size, such as "8MiB"

// A rule or budget of a life. One that another part of the scenario names (the hog's) is none.
struct PlanItem {
  std::size_t life;
  bool budget;
  std::size_t index;
};
std::vector<PlanItem> plan_items(const harness::Scenario& scenario);

// `items` are of plan_items(scenario); those at `kept` stay, and whatever is no item.
harness::Scenario with_items(const harness::Scenario& scenario, const std::vector<PlanItem>& items,
                             const std::vector<std::size_t>& kept);

// Whether what a life expects still has something that causes it. Without it anybody fails, and
// nothing is said of the save path any more.
bool keeps_its_causes(const harness::Scenario& smaller, const harness::Scenario& whole);

// Numbers of ranks that the subject runs with and in which every rank that the scenario names is
// there, ascending; the scenario's own comes last.
std::vector<int> worlds_to_try(const harness::Scenario& scenario, const harness::Subject& subject);

// Its own size of the state comes last, after each power of two below it; empty where it has none.
std::vector<std::string> states_to_try(const harness::Scenario& scenario,
                                       const harness::Subject& subject);

// The same requirements FAIL, and nothing is INVALID that was not.
bool fails_in_the_same_way(const reports::ScenarioResult& before,
                           const reports::ScenarioResult& now);

}  // namespace savegate::cli
