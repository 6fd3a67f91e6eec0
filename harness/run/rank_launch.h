// Starts the ranks of a life with the environment of the subject's contract.
#pragma once

#include <string>
#include <vector>

#include "harness/memory/job_cgroup.h"
#include "harness/run/life_runner.h"
#include "harness/run/supervisor.h"

namespace savegate::harness {

struct RankPlaces {
  std::string mount;
  std::string control;
  std::string events;                 // directory
  std::string logs;                   // directory
  std::string rendezvous;             // directory
  std::string ranks;                  // directory of what savegate-rank writes down
  int port = 0;                       // MASTER_PORT, leased as long as the ranks live
  const JobCgroup* cgroup = nullptr;  // where the ranks have some of their own
};

Result<std::vector<WatchedRank>> launch_ranks(const LifeSetup& setup, const RankPlaces& places);

}  // namespace savegate::harness
