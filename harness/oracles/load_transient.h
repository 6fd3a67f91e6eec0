// M5: what a load takes of host memory while it runs stays within its budget.
#pragma once

#include "harness/evidence.h"
#include "reports/result.h"

namespace savegate::harness {

// Judged where the scenario claims it: elsewhere a copy may be how the load is meant to be.
reports::Verdict load_stays_in_budget(const Evidence& evidence);

}  // namespace savegate::harness
