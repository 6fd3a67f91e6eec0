// Whether a scenario can be put to a subject at all, known before anything is run.
//
// A scenario that asks for what the subject does not have (a pointer file, a way to change its
// data) is skipped with the reason: to run it would prove nothing, and to fail it would be unjust.
#pragma once

#include <string>

#include "harness/scenario.h"
#include "harness/subject.h"
#include "reports/result.h"

namespace savegate::harness {

// Why the scenario cannot be put to the subject on that device; "" if it can.
std::string inapplicable(const Scenario& scenario, const Subject& subject,
                         const std::string& device);

// The result of a scenario that was not run: SKIP where it does not apply, INVALID where it was to
// be run and could not, such as a sweep without a point.
reports::ScenarioResult not_run(const Scenario& scenario, reports::Outcome outcome,
                                const std::string& reason);

// In the subject's own terms: every `change` of a life as environment variables; faults of what a
// rank writes, and damage to what it wrote, on those ranks that do write.
Scenario resolved_for(Scenario scenario, const Subject& subject);

}  // namespace savegate::harness
