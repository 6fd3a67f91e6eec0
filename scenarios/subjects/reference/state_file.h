// The auxiliary file of a rank, state-00001-of-00004.json: what is no tensor, and what the tensors
// of the rank's shard are slices of.
#pragma once

#include <string>
#include <vector>

#include "faults/status.h"
#include "scenarios/subjects/reference/state.h"

namespace savegate::reference {

struct TensorPlace {
  std::string name;
  std::string kind;
  gpu::Shape global_shape;
  gpu::Shape offset;
};

struct StateFile {
  std::int64_t step = 0;
  int rank = 0;
  int world = 0;
  Scheduler scheduler;
  std::vector<RandomStream> random;
  Counters counters;
  std::vector<TensorPlace> tensors;
};

StateFile state_file_of(const State& state, int rank, int world);
std::string print_state_file(const StateFile& file);
Result<StateFile> parse_state_file(const std::string& json, const std::string& path);

}  // namespace savegate::reference
