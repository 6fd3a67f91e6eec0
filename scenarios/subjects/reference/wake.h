// How much of each rank's device another process could allocate: found out by one that does.
//
// The ranks ask in turn, each while all others wait and allocate nothing, so that neither two
// probes on one device nor a probe and a rank are in each other's way.
#pragma once

#include "faults/status.h"
#include "harness/worker/neighbour_process.h"
#include "harness/worker/worker.h"

namespace savegate::reference {

struct Job;

class WakeProbe {
 public:
  static Result<WakeProbe> start(const worker::Environment& environment);

  // Called by all ranks.
  Result<std::uint64_t> wakeable(const Job& job);

 private:
  explicit WakeProbe(worker::NeighbourProcess neighbour) : neighbour_(std::move(neighbour)) {}

  worker::NeighbourProcess neighbour_;
};

// The fact `gpu_wakeable`, where the job has a probe.
void add_wakeable(const Job& job, worker::Memory& facts);

}  // namespace savegate::reference
