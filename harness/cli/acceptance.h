// The acceptance of a save path (C11): the scenario that it is, and the sheet of its evidence.
#pragma once

#include "harness/evidence.h"
#include "harness/scenario.h"
#include "reports/signoff.h"

namespace savegate::cli {

// `saves` consecutive ones, then the job is killed within the next; a resume in new processes,
// another save, a second kill within the one after; a resume that completes it.
Result<harness::Scenario> acceptance_scenario(const harness::Subject& subject, int world,
                                              std::uint64_t saves, std::uint64_t seed);

// Fills in what the evidence shows: requirements, saves, restores, checkpoints, memory, versions,
// and what is still unmeasured. `saves`, `confidence`, `device` and `backing` are set already.
void fill_sheet(const harness::Evidence& evidence, const reports::ScenarioResult& result,
                reports::Signoff& sheet);

}  // namespace savegate::cli
