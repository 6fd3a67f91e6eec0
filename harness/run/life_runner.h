// One life: tamper, mount, launch, watch, collect.
#pragma once

#include <string>

#include "faults/status.h"
#include "harness/evidence.h"
#include "harness/run/scenario_runner.h"

namespace savegate::harness {

struct LifeSetup {
  const Scenario& scenario;
  const Subject& subject;
  const RunOptions& options;
  int number = 1;
  std::string folder;  // life-N in the store
  std::string backing;
  std::string scratch;  // short; for the mount point, the socket, the rendezvous
};

// Everything that evidence.h lists for a life is in `folder` when this returns.
Result<LifeRecord> run_life(const LifeSetup& setup);

// What runs as another process on a rank's device.
std::string neighbour_program(const LifeSetup& setup);

// Values for the {names} in the subject's commands.
std::map<std::string, std::string> command_values(const LifeSetup& setup);

}  // namespace savegate::harness
