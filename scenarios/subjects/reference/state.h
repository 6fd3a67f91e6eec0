// The state of a training run on one rank: everything that an exact resume needs.
//
// Tensors (parameters and Adam moments) are slices along the first dimension of global tensors; the
// rest is small: scheduler, four random number streams, counters.
//
// Expert parallelism: each expert rank has experts of its own, sliced over the ranks that share it;
// all else is sliced over all ranks. The experts' names carry the expert rank, so that no two ranks
// save different bytes under one name and range.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "faults/status.h"
#include "gpu/backend.h"
#include "harness/worker/worker.h"
#include "scenarios/subjects/reference/marker.h"

namespace savegate::reference {

struct NamedTensor {
  std::string name;
  std::string kind;  // "parameter" or "optimizer"
  gpu::Tensor tensor;
  gpu::Shape global_shape;
  gpu::Shape offset;
};

// Where a parameter and its moments are in State::tensors; integers have no moments.
struct Parameter {
  std::size_t value = 0;
  std::size_t average = 0;
  std::size_t average_of_squares = 0;
  bool trained_by_adam = false;
};

struct Scheduler {
  double base = 0.01;  // learning rates
  double current = 0.01;
  double decay = 0.98;  // each step
};

// A counter-based generator: its whole state is a seed and how many numbers were drawn.
struct RandomStream {
  std::string name;  // "cpu", "gpu", "python", "numpy"
  std::uint64_t seed = 0;
  std::uint64_t drawn = 0;
  std::uint64_t draw();
};

struct Placement {
  int rank = 0;
  int world = 1;
  int expert_parallel = 1;  // expert ranks: a divisor of `world`
  int expert_rank() const { return rank % expert_parallel; }
};

struct Counters {
  std::int64_t global_step = 0;
  std::int64_t optimizer_step = 0;
  std::int64_t effective_steps = 0;  // those that changed a parameter
  std::int64_t data_cursor = 0;      // the next sample of the whole job
};

struct State {
  std::vector<NamedTensor> tensors;
  std::vector<Parameter> parameters;
  Scheduler scheduler;
  std::vector<RandomStream> random;
  Counters counters;
  std::vector<gpu::Buffer> memory;  // behind `tensors`

  // Zeroed tensors at step 0; `bytes` is the size of all ranks' tensors together.
  static Result<State> create(gpu::Backend& backend, const Placement& placement,
                              std::uint64_t bytes);
  // The state that a fresh run begins with.
  Result<void> start(gpu::Backend& backend, int rank);
};

std::string expert_suffix(int expert_rank);  // of an expert's name

std::vector<RandomStream> fresh_random(int rank);

// Every object of the state with the digest of its bytes.
Result<std::vector<worker::Item>> digest_items(gpu::Backend& backend, const State& state,
                                               const Contract& contract);

// The items that are no tensors, as the events and the reader name them.
std::vector<worker::Item> small_items(const Scheduler& scheduler,
                                      const std::vector<RandomStream>& random,
                                      const Counters& counters, const Contract& contract);

}  // namespace savegate::reference
