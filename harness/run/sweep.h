// A sweep: the same scenario once for each point that one recorded clean life shows.
//
//   Scenario clean = clean_scenario(scenario);                      // no generator, no faults
//   SAVEGATE_TRY(std::string folder, run_scenario(clean, subject, options));
//   SAVEGATE_TRY(faults::Trace trace, faults::read_trace(sweep_trace(folder, scenario)));
//   SAVEGATE_TRY(Sweep sweep, make_sweep(scenario, trace));
//   for (const Scenario& point : sweep.scenarios) …
//
// A point is an operation that succeeded in the clean life, named by rank, kind, path and its
// number among that rank's like operations within the phase, so that it is found again in every
// life. A part of a path that no other save of the life knows, numbers aside, is made up anew each
// time (`.tmpWuRvtg`): any name stands for it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "faults/status.h"
#include "faults/trace.h"
#include "harness/scenario.h"
#include "reports/result.h"

namespace savegate::harness {

struct SweepPoint {
  faults::Rule rule;
  std::string text;  // "rank 1 write step_2/… nth 3 middle"
};

struct Sweep {
  std::vector<Scenario> scenarios;  // with `point` set and a name of its own
  reports::Coverage coverage;
};

// The lives up to the one that gets the fault, which is without rules here and expected to be
// complete. Those before it are as they are, since they make what it finds.
Scenario clean_scenario(const Scenario& scenario);
std::string sweep_trace(const std::string& clean_folder, const Scenario& scenario);

// All of them, in the order in which they began; the sample is not looked at.
Result<std::vector<SweepPoint>> sweep_points(const Generator& generator,
                                             const faults::Trace& trace);

Result<Sweep> make_sweep(const Scenario& scenario, const faults::Trace& trace);

}  // namespace savegate::harness
