// Cases: the results of a run as a CI shows them, which keeps what it has seen by name.
//
// A scenario is a case; of a sweep, each class of its points is one ("one-rank [write middle]"), so
// that a sample of other points the next night has the same names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reports/result.h"

namespace savegate::reports {

struct Case {
  std::string suite;
  std::string name;
  std::vector<const ScenarioResult*> results;

  // The worst of its results, one in quarantine counting least; never null.
  const ScenarioResult* worst = nullptr;
  std::size_t like_worst = 0;  // how many ended as that one did

  Measurement seconds() const;  // of all results together
};

std::vector<Case> cases_of(const RunRecord& run);  // in the order in which they were run

// "rank 1 write step_2/x nth 3 middle" → "write middle"
std::string point_class(std::string_view point);

// "C1: rank 0 says ok", of the first verdict that decided the outcome.
std::string first_sentence(const ScenarioResult& result);

// Its quoted evidence, where more is found and how it is repeated; one of each for some results
// that ended as the worst one.
std::string explain(const Case& one);

}  // namespace savegate::reports
