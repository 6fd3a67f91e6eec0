#include "scenarios/subjects/reference/wake.h"

#include <cstdio>

#include "scenarios/subjects/reference/job.h"

namespace savegate::reference {

Result<WakeProbe> WakeProbe::start(const worker::Environment& environment) {
  SAVEGATE_TRY(auto neighbour, worker::NeighbourProcess::start(
                                   environment.wake_probe, environment.device, environment.rank));
  return WakeProbe(std::move(neighbour));
}

// A rank whose probe fails still takes its turns.
Result<std::uint64_t> WakeProbe::wakeable(const Job& job) {
  Result<std::uint64_t> answer;
  SAVEGATE_CHECK(job.comms.barrier());
  for (int turn = 0; turn < job.world; ++turn) {
    if (turn == job.rank) answer = neighbour_.ask("probe");
    SAVEGATE_CHECK(job.comms.barrier());
  }
  return answer;
}

void add_wakeable(const Job& job, worker::Memory& facts) {
  if (job.wake_probe == nullptr) return;
  const auto bytes = job.wake_probe->wakeable(job);
  facts["gpu_wakeable"] = bytes ? std::optional(*bytes) : std::nullopt;
  if (!bytes) {
    std::fprintf(stderr, "savegate-reference: rank %d: %s\n", job.rank,
                 bytes.error().to_string().c_str());
  }
}

}  // namespace savegate::reference
