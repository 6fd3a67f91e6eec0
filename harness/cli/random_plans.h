// Random plans on one subject, until the budget is used.
#pragma once

#include <cstdint>

#include "faults/status.h"
#include "harness/cli/budget.h"
#include "harness/cli/session.h"

namespace savegate::cli {

struct RandomPlans {
  int world = 2;
  std::uint64_t seed = 1;
  int jobs = 1;  // at the same time
};

// Each plan is in the run's folder, as random-plans/plan-0001.toml.
Result<void> run_random_plans(Session& session, const Budget& budget,
                              const harness::Subject& subject, const RandomPlans& plans);

}  // namespace savegate::cli
