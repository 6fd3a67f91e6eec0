// Launchers: torchrun, mpirun and srun start the ranks in place of the runner.
//
// Each rank's program runs below savegate-rank, which gives it the environment of the contract and
// writes down its process and its end; read_ranks() reads that. A launcher ends the peers of a rank
// that died: what it ended says nothing of the save path, and is known by `ended_by`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "faults/status.h"
#include "harness/evidence.h"

namespace savegate::harness {

struct LauncherSetup {
  std::string name;  // "torchrun"
  std::vector<std::string> options;
  int world = 1;
  int port = 0;  // MASTER_PORT
  std::string python;
  std::string bin;   // of savegate-rank
  std::string logs;  // torchrun's own, with a rank's error file, go to logs/torchrun
};

// The launcher's command for a rank's command.
std::vector<std::string> launcher_command(const LauncherSetup& setup,
                                          const std::vector<std::string>& command);

// "NAME=value", of what the launchers themselves need.
std::vector<std::string> launcher_environment(const LauncherSetup& setup);

// What savegate-rank wrote down so far, by rank; those that have not ended have `ended_ns` 0.
std::vector<RankProcess> read_ranks(const std::string& folder, int world);

}  // namespace savegate::harness
