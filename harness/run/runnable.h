// Whether a scenario can be run at all: with this subject, on that device, on this machine.
#pragma once

#include "faults/status.h"
#include "harness/scenario.h"
#include "harness/subject.h"

namespace savegate::harness {

// Why not: invalid where the scenario does not apply to the subject, unavailable where this machine
// does not permit it, which is found out by trying.
Result<void> check_runnable(const Scenario& scenario, const Subject& subject,
                            const std::string& device);

}  // namespace savegate::harness
